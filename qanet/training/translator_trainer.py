"""A translator's training, and how well it translates."""

from collections.abc import Callable, Sequence
from functools import partial

import keras
from keras import ops

from qanet.backend import set_seed
from qanet.console import log
from qanet.datasets.plans import PlannedBatch
from qanet.errors import needing
from qanet.training.distribution import make_distribution
from qanet.training.learner import Learner
from qanet.training.loop import Loop, Task
from qanet.training.loss import smoothed_cross_entropy
from qanet.translation.config import TranslationConfig, TranslationLearningConfig
from qanet.translation.neural import NeuralTranslator
from qanet.translation.parallel import Pair, PairBatches, read_pairs, split_held_out
from qanet.translation.run import TranslationRun, build_translation_model
from qanet.translation.subwords import Subwords, train_subwords


def train_translator(
    config: TranslationConfig, run: TranslationRun, resume: bool = False
) -> dict[str, float] | None:
    """Trains, measures BLEU on what was held out, and stores it all.

    Args:
        config: the configuration.
        run: the directory.
        resume: continue from its newest checkpoint.

    Returns:
        BLEU, greedy and with beams, and what it was measured on; of several workers the
        first one's alone.

    Raises:
        UserError: something is wrong with the data, the directory or the devices, or
            the library for sub-words or for BLEU is not installed.
    """
    sacrebleu = _bleu_library()
    distribution = make_distribution(config.distribution)
    with run.held(distribution.is_chief):
        with distribution.scope():
            digests = run.digest_of_texts(config.data, resume, distribution.replicas)
            loop, held_out, subwords = _make_loop(config, run, resume, distribution)
            save = partial(subwords.save, run.subwords_path)
            loop.fit(partial(run.begin, config, save, resume, digests))
        if not distribution.is_chief:
            return None
        metrics = {"pairs": len(held_out)}
        for name, beams in (("bleu_greedy", 1), ("bleu_beam_5", 5)):
            translator = NeuralTranslator(run.directory, beams=beams)
            metrics[name] = bleu(sacrebleu, translator, held_out)
        run.save_metrics(metrics)
    return metrics


def _make_loop(
    config: TranslationConfig, run: TranslationRun, resume: bool, distribution
) -> tuple[Loop, list[Pair], Subwords]:
    """The loop, the pairs that are held out, and the sub-words."""
    training = config.training
    set_seed(training.seed)
    pairs = read_pairs(config.data, config.reverse)
    train, held_out = split_held_out(pairs, training.held_out)
    if resume:
        subwords = Subwords.load(run.subwords_path)
    else:
        texts = [text for pair in train for text in pair]
        subwords = train_subwords(texts, config.model.pieces, training.seed)
    batches = _encoded(train, subwords, training)
    model = build_translation_model(config.model, len(subwords))
    task = Task(
        learner=translation_learner(model, training),
        maker=batches,
        plan=batches.plan(training.steps, distribution.replicas),
        measure=_measurement(
            distribution.predictor(model),
            _encoded(held_out, subwords, training),
            training,
        ),
        score=lambda measured: -measured["held_out_loss"],
        headline=("held_out_loss", "held-out loss"),
    )
    loop = Loop(task, training, run, distribution)
    if resume:
        loop.resume()
    if distribution.is_chief:
        log.info(
            f"{len(train):,} pairs to train on ({batches.left_out:,} too long and left "
            f"out), {len(held_out):,} held out, {len(subwords):,} sub-words, "
            f"{model.count_params():,} parameters"
        )
    return loop, held_out, subwords


def translation_learner(
    model: keras.Model, config: TranslationLearningConfig
) -> Learner:
    """What trains a translator: the mean loss of a sub-word is made small.

    Each replica takes the mean of its own share, which has about as many sub-words.
    """

    def loss(targets, outputs):
        total, count = smoothed_cross_entropy(
            targets["next"], outputs, config.label_smoothing
        )
        return total / ops.maximum(count, 1.0)

    return Learner(model, loss, config)


def _measurement(
    predict: Callable, batches: PairBatches, config: TranslationLearningConfig
) -> Callable[[], dict[str, float]]:
    """Measures the mean loss of a sub-word on pairs that are not trained on."""

    def loss_of(batch: PlannedBatch) -> tuple[float, float]:
        logits = predict(batches.inputs(batch))
        target = batches.targets(batch)["next"]
        total, count = smoothed_cross_entropy(target, logits, config.label_smoothing)
        return float(total), float(count)

    def measure():
        totals, counts = zip(*map(loss_of, batches.reading()), strict=True)
        return {"held_out_loss": sum(totals) / sum(counts)}

    return measure


def bleu(sacrebleu, translator: NeuralTranslator, pairs: Sequence[Pair]) -> float:
    """BLEU of the best translations, 0 to 100 (Post, 2018)."""
    found = translator.translate([source for source, _ in pairs], 1)
    texts = [best[0] if best else "" for best in found]
    return round(sacrebleu.corpus_bleu(texts, [[t for _, t in pairs]]).score, 2)


def _encoded(
    pairs: Sequence[Pair], subwords: Subwords, config: TranslationLearningConfig
) -> PairBatches:
    sources, targets = zip(*pairs, strict=True)
    return PairBatches(subwords.encode(sources), subwords.encode(targets), config)


def _bleu_library():
    with needing("measuring BLEU needs sacrebleu", "qanet[translate]"):
        import sacrebleu
    return sacrebleu
