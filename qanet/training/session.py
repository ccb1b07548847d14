"""A whole training from files to scores: what `train.py` does between its prints."""

import json
from dataclasses import dataclass

from qanet.config import Config
from qanet.datasets.squad import Example
from qanet.datasets.training_data import read_training_data
from qanet.decoding import Answer
from qanet.evaluation.evaluator import evaluate
from qanet.files import write_text
from qanet.reader import Reader
from qanet.run import Run
from qanet.training.trainer import Trainer


@dataclass
class Report:
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
        count = min(count, len(self.examples))
        chosen = [i * len(self.examples) // count for i in range(count)]
        return [(self.examples[i], self.answers[i]) for i in chosen]


def train_run(config: Config, run: Run, resume: bool = False) -> Report:
    """Trains, evaluates the best weights on the whole of dev, and stores it all.

    Args:
        config: the configuration.
        run: the run directory.
        resume: continue from its newest checkpoint.

    Raises:
        UserError: something is wrong with the data, the vectors or the directory.
    """
    data = read_training_data(
        config,
        run.directory.parent / "cache",
        run.load_vocabulary() if resume else None,
    )
    for split, counts in data.counts.items():
        print(f"{split}: {_describe(counts)}")
    vocabulary = data.vocabulary
    if not resume:
        vocabulary.save(run.vocabulary_directory)
        run.save_config(config)
    print(
        f"vocabulary: {len(vocabulary.words):,} word vectors, "
        f"{len(vocabulary.characters):,} characters"
    )
    trainer = Trainer(config, data, run)
    data.counts["train"]["left_out"] = trainer.left_out
    write_text(run.directory / "data.json", json.dumps(data.counts, indent=2) + "\n")
    if trainer.left_out:
        print(
            f"left out of training: {trainer.left_out:,} questions without an answer "
            f"of at most {config.data.answer_limit} tokens"
        )
    if resume:
        found = trainer.resume()
        print(
            f"resumed at step {trainer.progress.step:,}"
            if found
            else "there is no whole checkpoint of this configuration: starting anew"
        )
    print(
        f"model: {config.model.name}, {trainer.model.count_params():,} parameters, "
        f"{trainer.trainable_parameters:,} trained"
    )
    trainer.fit()

    reader = Reader.load(run.directory)
    result = evaluate(reader, data.dev_examples, data.dev, progress="evaluating")
    run.save_metrics(result.metrics)
    answers = [result.answers[example.id][0] for example in data.dev_examples]
    return Report(result.metrics, data.dev_examples, answers)


def _describe(counts: dict[str, int]) -> str:
    """The counts as words: always the questions, the rest where there is any."""
    shown = {
        "paragraphs": "paragraphs",
        "impossible": "without an answer",
        "answers_snapped": "answers widened to whole tokens",
        "offsets_repaired": "answer offsets repaired",
        "answers_not_found": "answers not found in their context",
    }
    parts = [f"{counts['questions']:,} questions"]
    parts += [f"{counts[key]:,} {name}" for key, name in shown.items() if counts[key]]
    return ", ".join(parts)
