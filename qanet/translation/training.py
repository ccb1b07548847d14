"""Training of a translation model, and how well it translates."""

import json
import time
from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from qanet.console import log, progress_bar
from qanet.errors import UserError
from qanet.files import (
    DamagedFile,
    pack_json,
    read_arrays,
    unpack_json,
    write_csv,
    write_text,
)
from qanet.translation.config import TrainingConfig, TranslationConfig
from qanet.translation.neural import NeuralTranslator
from qanet.translation.parallel import Pair, PairBatches, read_pairs, split_held_out
from qanet.translation.run import TranslationRun, build_translation_model
from qanet.translation.subwords import PADDING, Subwords, train_subwords
from qanet.weights import assign_variables, save_variables, training_variables


class SmoothedCrossEntropy(keras.losses.Loss):
    """Mean over the sub-words of -Σ_i q_i log p_i.

    q has `1 - smoothing` on the right sub-word and shares the rest among all alike
    (Szegedy et al., 2016, section 7). Padding does not count.

    Args:
        smoothing: what is shared.
    """

    def __init__(self, smoothing: float, **kwargs):
        super().__init__(reduction="none", **kwargs)
        self.smoothing = smoothing

    def call(self, target, logits):
        target = ops.cast(target, "int32")
        total = ops.logsumexp(logits, axis=-1)
        right = ops.take_along_axis(logits, target[..., None], axis=-1)[..., 0]
        loss = total - right
        if self.smoothing:
            uniform = total - ops.mean(logits, axis=-1)
            loss = (1.0 - self.smoothing) * loss + self.smoothing * uniform
        real = ops.cast(ops.not_equal(target, PADDING), loss.dtype)
        return ops.sum(loss * real) / ops.maximum(ops.sum(real), 1.0)


def compile_translation_model(model: keras.Model, config: TrainingConfig) -> None:
    """Gives the model its loss and its optimizer, Adam with warm-up and a cosine."""
    rate = keras.optimizers.schedules.CosineDecay(
        config.learning_rate / max(config.warmup_steps, 1),
        max(config.steps - config.warmup_steps, 1),
        warmup_target=config.learning_rate,
        warmup_steps=config.warmup_steps,
    )
    model.compile(
        optimizer=keras.optimizers.Adam(
            rate, beta_2=0.98, epsilon=1e-9, global_clipnorm=config.clip_norm
        ),
        loss=SmoothedCrossEntropy(config.label_smoothing),
        jit_compile=True,
    )
    model.optimizer.build(model.trainable_variables)


def train_translator(
    config: TranslationConfig, run: TranslationRun, resume: bool = False
) -> dict[str, float]:
    """Trains, measures BLEU on what was held out, and stores it all.

    Args:
        config: the configuration.
        run: the directory.
        resume: continue from its last measurement.

    Returns:
        BLEU, greedy and with beams, and what it was measured on.

    Raises:
        UserError: something is wrong with the data or the directory, or the library
            for sub-words or for BLEU is not installed.
    """
    sacrebleu = _bleu_library()
    training = config.training
    keras.utils.set_random_seed(training.seed)
    pairs = read_pairs(config.data, config.reverse)
    train, held_out = split_held_out(pairs, training.held_out)
    if resume:
        subwords = Subwords.load(run.subwords_path)
    else:
        texts = [text for pair in train for text in pair]
        subwords = train_subwords(texts, config.model.pieces, training.seed)
        subwords.save(run.subwords_path)
        run.save_config(config)
    batches = _encoded(train, subwords, training)
    model = build_translation_model(config.model, len(subwords))
    compile_translation_model(model, training)
    history = _restore(run, model) if resume else []
    log.info(
        f"{len(train):,} pairs to train on ({batches.left_out:,} too long and left "
        f"out), {len(held_out):,} held out, {len(subwords):,} sub-words, "
        f"{model.count_params():,} parameters"
    )
    _fit(config, run, model, batches, _encoded(held_out, subwords, training), history)
    metrics = {"pairs": len(held_out)}
    for name, beams in (("bleu_greedy", 1), ("bleu_beam_5", 5)):
        translator = NeuralTranslator(run.directory, beams=beams)
        metrics[name] = bleu(sacrebleu, translator, held_out)
    write_text(run.metrics_path, json.dumps(metrics, indent=2) + "\n")
    return metrics


def bleu(sacrebleu, translator: NeuralTranslator, pairs: Sequence[Pair]) -> float:
    """BLEU of the best translations, 0 to 100 (Post, 2018)."""
    found = translator.translate([source for source, _ in pairs], 1)
    texts = [best[0] if best else "" for best in found]
    return round(sacrebleu.corpus_bleu(texts, [[t for _, t in pairs]]).score, 2)


def _encoded(
    pairs: Sequence[Pair], subwords: Subwords, config: TrainingConfig
) -> PairBatches:
    sources, targets = zip(*pairs, strict=True)
    return PairBatches(subwords.encode(sources), subwords.encode(targets), config)


def _fit(
    config: TranslationConfig,
    run: TranslationRun,
    model: keras.Model,
    batches: PairBatches,
    held_out: PairBatches,
    history: list[dict[str, float]],
) -> None:
    """Trains to the end; each measurement is a row of the history."""
    training = config.training
    step = int(history[-1]["step"]) if history else 0
    seconds = history[-1]["seconds"] if history else 0.0
    with progress_bar(total=training.steps, initial=step, unit="step") as bar:
        while step < training.steps:
            begin = time.monotonic()
            last = min(
                (step // training.evaluate_every + 1) * training.evaluate_every,
                training.steps,
            )
            losses = []
            for inputs, target in batches.training(step, last):
                losses.append(float(model.train_on_batch(inputs, target)))
                bar.set_postfix({"loss": f"{losses[-1]:.3f}"}, refresh=False)
                bar.update()
            if not np.isfinite(losses).all():
                raise UserError(
                    f"the loss is no finite number before step {last}; start anew with "
                    "a lower training.learning_rate"
                )
            step = last
            seconds += time.monotonic() - begin
            row = {
                "step": step,
                "seconds": round(seconds, 1),
                "loss": float(np.mean(losses)),
                "held_out_loss": _loss(model, held_out),
            }
            history.append(row)
            write_csv(run.history_path, history)
            run.save_weights(model)
            save_variables(
                run.checkpoint_path,
                training_variables(model),
                history=pack_json(history),
            )


def _loss(model: keras.Model, batches: PairBatches) -> float:
    """Mean loss of a sub-word."""
    total, count = 0.0, 0
    for inputs, target in batches.reading():
        real = int((target != PADDING).sum())
        total += float(model.test_on_batch(inputs, target)) * real
        count += real
    return total / count


def _restore(run: TranslationRun, model: keras.Model) -> list[dict[str, float]]:
    """Loads the checkpoint, if there is one; gives its history."""
    try:
        arrays = read_arrays(run.checkpoint_path)
        history = unpack_json(arrays.pop("history"))
        assign_variables(training_variables(model), arrays)
    except FileNotFoundError:
        return []
    except (OSError, DamagedFile, KeyError, ValueError) as error:
        raise UserError(
            f"{run.checkpoint_path}: cannot be continued from ({error}); delete it to "
            "start anew"
        ) from None
    return history


def _bleu_library():
    try:
        import sacrebleu
    except ImportError:
        raise UserError(
            "measuring BLEU needs sacrebleu: pip install 'qanet[translate]'"
        ) from None
    return sacrebleu
