"""A whole training from files to scores: what `train.py` does in between."""

from dataclasses import dataclass
from functools import partial

from qanet.config import ORIGINAL, Config
from qanet.console import log
from qanet.datasets.squad import Example, spread
from qanet.datasets.training_data import TrainingData, describe_counts
from qanet.datasets.training_files import read_training_data
from qanet.decoding import Answer
from qanet.evaluation.evaluator import evaluate
from qanet.files import cache_directory
from qanet.run import Run
from qanet.text.encoders import StoredEncoder
from qanet.training.distribution import Distribution, make_distribution
from qanet.training.trainer import Trainer


@dataclass
class TrainingReport:
    """What a training came to.

    Attributes:
        metrics: scores on the whole of dev, with the best averaged weights.
        examples: dev.
        answers: the best answer to each of `examples`.
    """

    metrics: dict[str, float]
    examples: list[Example]
    answers: list[Answer]

    def samples(self, count: int) -> list[tuple[Example, Answer]]:
        """Examples spread evenly over dev, with the reader's answers."""
        return spread(list(zip(self.examples, self.answers, strict=True)), count)


def train_run(config: Config, run: Run, resume: bool = False) -> TrainingReport | None:
    """Trains, evaluates the best weights on the whole of dev, and stores it all.

    Of several workers the first one writes and reports; the others return `None`.

    Args:
        config: the configuration.
        run: the run directory.
        resume: continue from its newest checkpoint.

    Raises:
        UserError: something is wrong with the data, the vectors, the directory or the
            devices.
    """
    distribution = make_distribution(config.distribution)
    with distribution.scope(), run.held(distribution.is_chief):
        return _train_run(config, run, resume, distribution)


def _train_run(
    config: Config, run: Run, resume: bool, distribution: Distribution
) -> TrainingReport | None:
    data = read_training_data(
        config,
        cache_directory(),
        _known_vocabulary(config, run, resume),
    )
    digests = data.digests()
    if resume:
        run.check_data(digests)
    if distribution.is_chief:
        _announce_data(config, data)
    trainer = Trainer(config, data, run, distribution)
    if distribution.is_chief:
        _announce_training(trainer)
    if resume:
        trainer.loop.resume()
    trainer.reader.check_questions(data.dev_examples)
    counts = data.counts
    for name, count in trainer.left_out.items():
        counts["train" if name == ORIGINAL else name]["left_out"] = count

    def save() -> None:
        data.vocabulary.save(run.vocabulary_directory)
        if config.data.no_answer:
            run.save_threshold(trainer.reader.threshold)

    trainer.loop.fit(partial(run.begin, config, save, resume, digests, counts))

    if not distribution.is_chief:
        return None
    run.load_weights(trainer.model)
    result = evaluate(
        trainer.reader,
        data.dev_examples,
        data.dev,
        progress="evaluating",
        choose_threshold=True,
    )
    if config.data.no_answer:
        run.save_threshold(result.metrics["threshold"])
    # The last file: where it is, there is nothing to resume.
    run.save_metrics(result.metrics)
    answers = [result.answers[example.id][0] for example in data.dev_examples]
    return TrainingReport(result.metrics, data.dev_examples, answers)


def _known_vocabulary(config: Config, run: Run, resume: bool) -> StoredEncoder | None:
    """The vocabulary that initial weights belong to; `None` where it is to be made."""
    if resume:
        return run.load_vocabulary()
    if config.training.start_from:
        return Run(config.training.start_from).load_vocabulary()
    return None


def _announce_data(config: Config, data: TrainingData) -> None:
    """Says what was read, and what in it a training does without."""
    for split, counts in data.counts.items():
        log.info(f"{split}: {describe_counts(counts)}")
    log.info(f"vocabulary: {data.vocabulary.describe()}")
    training = config.training
    if data.teacher:
        log.info(
            f"teacher: {training.teacher or 'packed'}, "
            f"{training.teacher_share:.0%} of the loss, "
            f"temperature {training.temperature:g}"
        )
    impossible = sum(
        counts["impossible"] for name, counts in data.counts.items() if name != "dev"
    )
    if impossible and not config.data.no_answer:
        log.warning(
            f"{impossible:,} questions have no answer and are left out; "
            "--set data.no_answer=true learns from them too"
        )
    if not impossible and config.data.no_answer:
        log.warning(
            "data.no_answer: all questions have an answer, so nothing is learned of "
            "those without"
        )


def _announce_training(trainer: Trainer) -> None:
    """Says what is about to be trained, and for how long."""
    training = trainer.config.training
    if left_out := sum(trainer.left_out.values()):
        log.info(
            f"left out of training: {left_out:,} questions without an answer "
            f"of at most {trainer.config.data.answer_limit} tokens"
        )
    log.info(
        f"model: {trainer.config.model.name}, {trainer.model.count_params():,} "
        f"parameters, {trainer.trainable_parameters:,} trained"
    )
    log.info(
        f"steps: {training.steps:,} of {training.batch_size} questions, "
        f"{_epochs(trainer):.1f} epochs"
    )
    if trainer.replicas > 1:
        log.info(f"replicas: {trainer.replicas}")
    dev = trainer.data.counts["dev"]
    one_kind = dev["impossible"] in (0, dev["questions"])
    if one_kind and trainer.config.data.no_answer:
        log.warning(
            f"data.no_answer: the threshold stays {trainer.reader.threshold:g}; a dev "
            "with questions of both kinds, with and without an answer, would choose it"
        )


def _epochs(trainer: Trainer) -> float:
    """How often a training sees each question of the original set that it learns."""
    mix, training = trainer.config.data.mix, trainer.config.training
    learned = trainer.data.sources[ORIGINAL] - trainer.left_out[ORIGINAL]
    epoch = learned * sum(mix.values()) / mix[ORIGINAL]
    return training.steps * training.batch_size / epoch
