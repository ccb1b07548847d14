"""The pre-training of BERT, and how well it predicts (Devlin et al., 2019)."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import keras
import numpy as np
from keras import ops

from qanet.backend import set_seed
from qanet.console import log
from qanet.layers.look_up import PADDING
from qanet.models.bert import piece_sizes
from qanet.models.bert_weights import (
    load_pretrained,
    safetensors_library,
    save_pretrained,
)
from qanet.pretraining.config import MLMLearningConfig, MLMPretrainingConfig
from qanet.pretraining.mlm_batches import MaskedBatches
from qanet.pretraining.mlm_model import build_mlm_model
from qanet.pretraining.pairs import encode_documents
from qanet.pretraining.run import MLMRun
from qanet.pretraining.texts import Document, read_documents, split_held_out
from qanet.text.pieces import WordPieces
from qanet.training.checkpoint import checkpoints
from qanet.training.distribution import check_share, make_distribution
from qanet.training.learner import Learner
from qanet.training.loop import Loop, Task
from qanet.training.loss import smoothed_cross_entropy

# Of the training and of what is held out, so that either has random second segments.
LEAST_DOCUMENTS = 2
# Of what is held out: trainings with other seeds are measured on the same pairs.
HELD_OUT_SEED = 42


def pretrain_mlm(
    config: MLMPretrainingConfig, run: MLMRun, resume: bool = False
) -> dict[str, float] | None:
    """Trains, and stores the encoder with its vocabulary.

    Args:
        config: the configuration.
        run: the directory.
        resume: continue from its newest checkpoint.

    Returns:
        What the best weights were measured to be on what was held out; of several
        workers the first one's alone.

    Raises:
        UserError: something is wrong with the texts, the public model, the directory or
            the devices, or a library is not installed.
    """
    # Asked for at the end.
    safetensors_library()
    distribution = make_distribution(config.distribution)
    check_share(config.training.batch_size, distribution)
    with distribution.scope(), run.held(distribution.is_chief):
        digests = run.digest_of_texts(config.data.text, resume)
        loop, vocabulary = _make_loop(config, run, resume, distribution)
        save = partial(vocabulary.save, run.vocabulary_directory)
        loop.fit(partial(run.begin, config, save, resume, digests))
        if not distribution.is_chief:
            return None
        model = loop.task.learner.model
        run.load_weights(model)
        vocabulary.save(run.encoder_directory)
        save_pretrained(model, config.model, run.encoder_directory)
        best = max(loop.progress.history, key=loop.task.score)
        metrics = {"step": best["step"]} | {name: best[name] for name in MEASURED}
        run.save_metrics(metrics)
    return metrics


def _make_loop(
    config: MLMPretrainingConfig, run: MLMRun, resume: bool, distribution
) -> tuple[Loop, WordPieces]:
    """The loop, and the word pieces."""
    training = config.training
    set_seed(training.seed)
    documents = read_documents(config.data.text)
    train, held_out = split_held_out(documents, config.data.held_out, LEAST_DOCUMENTS)
    if resume:
        vocabulary = WordPieces.load(run.vocabulary_directory)
    else:
        vocabulary = _make_vocabulary(config, train)
    batches, held_out_batches = (
        MaskedBatches(
            encode_documents(part, vocabulary), vocabulary, config, seed, count, name
        )
        for part, seed, count, name in (
            (train, training.seed, training.steps * training.batch_size, "to train on"),
            (held_out, HELD_OUT_SEED, None, "held out"),
        )
    )
    model = build_mlm_model(config.model, piece_sizes(vocabulary))
    if config.model.pretrained and not checkpoints(run.checkpoint_directory):
        load_pretrained(model, config.model)
    task = Task(
        learner=mlm_learner(model, training),
        maker=batches,
        plan=batches.plan(),
        measure=_measurement(distribution.predictor(model), held_out_batches),
        score=lambda measured: -measured["held_out_loss"],
        headline=("held_out_loss", "held-out loss"),
    )
    loop = Loop(task, training, run, distribution)
    if resume:
        loop.resume()
    if distribution.is_chief:
        log.info(
            f"{len(train):,} documents of {len(batches.pieces):,} pieces to train on, "
            f"{len(held_out):,} of {len(held_out_batches.pieces):,} held out, "
            f"{vocabulary.describe()}, {model.count_params():,} parameters"
        )
    return loop, vocabulary


def _make_vocabulary(config: MLMPretrainingConfig, train: list[Document]) -> WordPieces:
    """The public model's, or one that is made of the texts to train on."""
    if config.model.pretrained:
        return WordPieces.load(Path(config.model.pretrained))
    texts = (text for document in train for text in document)
    return WordPieces.train(texts, config.data.pieces)


def mlm_learner(model: keras.Model, config: MLMLearningConfig) -> Learner:
    """What trains the model: the mean loss of a masked piece and that of a pair.

    Each replica takes the mean of its own share, which has about as many pieces.
    """

    def loss(targets, outputs):
        total, count = smoothed_cross_entropy(
            targets["labels"], outputs["masked_logits"], 0.0
        )
        pairs = pair_losses(targets["is_random"], outputs["is_random"])
        return total / ops.maximum(count, 1.0) + ops.mean(pairs)

    return Learner(model, loss, config)


def pair_losses(is_random, logits):
    """-log p of whether the second segment is random.

    Args:
        is_random: int32 `(batch,)`, 0 or 1.
        logits: float `(batch, 2)`.

    Returns:
        Float tensor `(batch,)`.
    """
    right = ops.take_along_axis(logits, is_random[:, None], axis=-1)[:, 0]
    return ops.logsumexp(logits, axis=-1) - right


MEASURED = ("held_out_loss", "masked_loss", "masked_accuracy", "next_sentence_accuracy")


def _measurement(
    predict: Callable, batches: MaskedBatches
) -> Callable[[], dict[str, float]]:
    """Measures a model on documents that are not trained on, always the same pairs.

    What it gives are `MEASURED`: the loss; that of a masked piece; the share of these
    that are predicted rightly; and the share of the pairs that are.
    """

    def sums_of(batch) -> np.ndarray:
        real = int(batch.real.sum())
        outputs, targets = (
            {name: np.asarray(array)[:real] for name, array in arrays.items()}
            for arrays in (predict(batches.inputs(batch)), batches.targets(batch))
        )
        labels, is_random = targets["labels"], targets["is_random"]
        total, count = smoothed_cross_entropy(labels, outputs["masked_logits"], 0.0)
        rightly = outputs["masked_logits"].argmax(axis=-1) == labels
        pairs = pair_losses(is_random, outputs["is_random"])
        next_rightly = outputs["is_random"].argmax(axis=-1) == is_random
        return np.array(
            [
                float(total),
                float(count),
                (rightly & (labels != PADDING)).sum(),
                float(ops.sum(pairs)),
                next_rightly.sum(),
                real,
            ]
        )

    def measure():
        total, count, rightly, of_pairs, next_rightly, pairs = sum(
            map(sums_of, batches.plan())
        )
        # Of whole words, none may have fitted.
        masked = total / max(count, 1.0)
        values = (
            masked + of_pairs / pairs,
            masked,
            rightly / max(count, 1.0),
            next_rightly / pairs,
        )
        return dict(zip(MEASURED, map(float, values), strict=True))

    return measure
