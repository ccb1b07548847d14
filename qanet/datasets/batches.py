"""What a model is fed: the inputs and targets of planned batches, of static shape."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from qanet.datasets.contextual import ContextualVectors, contextual_vectors
from qanet.datasets.features import Features
from qanet.datasets.plans import PlannedBatch
from qanet.datasets.soft_targets import TeacherTargets
from qanet.datasets.squad import Example
from qanet.datasets.windows import Windows
from qanet.text.encoders import TextEncoder


class Maker(Protocol):
    """Makes what a model is trained on."""

    def inputs(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """The model's inputs."""

    def targets(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """The targets of the loss."""


class BatchMaker:
    """Turns planned batches into a model's inputs and targets.

    Args:
        features: tokenised examples.
        table: the columns that the text encoder makes of the words of `features`.
        windows: the items that plans speak of.
        no_answer: whether the model can say that the context does not answer.
        teacher: what a teacher says of the examples, for models that learn from one.
        contextual: the tokens' contextual vectors, for models that read them.
    """

    def __init__(
        self,
        features: Features,
        table: dict[str, np.ndarray],
        windows: Windows,
        no_answer: bool = False,
        teacher: TeacherTargets | None = None,
        contextual: ContextualVectors | None = None,
    ):
        self.features = features
        self.table = table
        self.windows = windows
        self.no_answer = no_answer
        self.teacher = teacher
        self.contextual = contextual
        contexts = features.context_of[windows.examples]
        self._context_begins = features.context_splits[contexts] + windows.offsets
        self._question_begins = features.question_splits[windows.examples]
        self._question_lengths = features.question_lengths[windows.examples]
        self._impossible = features.impossible[windows.examples]
        self._starts = features.starts[windows.examples] - windows.offsets
        self._ends = features.ends[windows.examples] - windows.offsets

    def inputs(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """The model's inputs, as `qanet.models.inputs` describes them."""
        places = {
            "context": (
                self._context_begins[batch.items],
                np.where(batch.real, self.windows.lengths[batch.items], 0),
                batch.context_length,
            ),
            "question": (
                self._question_begins[batch.items],
                np.where(batch.real, self._question_lengths[batch.items], 0),
                batch.question_length,
            ),
        }
        inputs = {}
        for text, of_text in places.items():
            words = _padded(getattr(self.features, f"{text}_words"), *of_text)
            for column, table in self.table.items():
                inputs[f"{text}_{column}"] = table[words]
            if self.contextual is not None:
                vectors = _padded(getattr(self.contextual, text), *of_text)
                inputs[f"{text}_contextual"] = vectors
        return inputs

    def targets(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """Each token of the windows as start and as end: one where it is, else zero.

        Returns:
            float32 `(batch, context_length)` each; where the model can say that there
            is no answer, `(batch, 1 + context_length)`, that place first. With a
            teacher also `teacher_start_logits` and `teacher_end_logits`.
        """
        items = batch.items
        impossible = self._impossible[items]
        starts, ends = np.zeros((2, len(items), batch.context_length), dtype=np.float32)
        rows = np.flatnonzero(~impossible)
        starts[rows, self._starts[items[rows]]] = 1.0
        ends[rows, self._ends[items[rows]]] = 1.0
        if self.no_answer:
            none = impossible.astype(np.float32)[:, None]
            starts = np.concatenate([none, starts], axis=1)
            ends = np.concatenate([none, ends], axis=1)
        return {"start_logits": starts, "end_logits": ends} | self._taught(batch)

    def _taught(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """What the teacher says of the windows' tokens: logarithms of probabilities.

        They sum to less than one where a window is a part of its context.
        """
        if self.teacher is None:
            return {}
        none = int(self.teacher.none_first)
        examples = self.windows.examples[batch.items]
        offsets = self.windows.offsets[batch.items]
        begins, ends = self.teacher.splits[examples], self.teacher.splits[examples + 1]
        length = none + batch.context_length
        both = np.full((2, len(examples), length), -np.inf, dtype=np.float32)
        for row in np.flatnonzero(ends > begins):
            values = self.teacher.values[:, begins[row] : ends[row]]
            size = self.windows.lengths[batch.items[row]]
            first = none + offsets[row]
            both[:, row, none : none + size] = values[:, first : first + size]
            both[:, row, :none] = values[:, :none]
        return {"teacher_start_logits": both[0], "teacher_end_logits": both[1]}


def reading_maker(
    examples: Sequence[Example],
    features: Features,
    vocabulary: TextEncoder,
    windows: Windows,
) -> BatchMaker:
    """What makes the inputs of a model that reads, and is not trained.

    Args:
        examples: what `features` was built from.
        features: their tokens, as `vocabulary` splits texts.
        vocabulary: the text encoder.
        windows: the items that plans speak of.
    """
    table = vocabulary.table(features.words)
    contextual = read_contextual(examples, features, vocabulary)
    return BatchMaker(features, table, windows, contextual=contextual)


def read_contextual(
    examples: Sequence[Example], features: Features, vocabulary: TextEncoder
) -> ContextualVectors | None:
    """The tokens' contextual vectors, where the text encoder has any."""
    if vocabulary.contextual is None:
        return None
    return contextual_vectors(
        vocabulary.contextual, examples, features, vocabulary.tokens
    )


def _padded(
    flat: np.ndarray, begins: np.ndarray, lengths: np.ndarray, size: int
) -> np.ndarray:
    """Rows of `flat` from `begins`, cut or padded with 0 to `size`."""
    positions = np.arange(size)
    real = positions < lengths[:, None]
    rows = np.zeros((*real.shape, *flat.shape[1:]), dtype=flat.dtype)
    rows[real] = flat[(begins[:, None] + positions)[real]]
    return rows


def training_batches(
    maker: Maker, plan: Sequence[PlannedBatch]
) -> Iterator[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """The inputs and targets of each batch of a plan, in order."""
    for batch in plan:
        yield maker.inputs(batch), maker.targets(batch)


# Batches that are made while others are computed.
AHEAD = 16


def training_dataset(maker: Maker, plan: Sequence[PlannedBatch], size: int | None):
    """`training_batches` as a `tf.data.Dataset` that works ahead.

    Args:
        maker: makes the batches.
        plan: plans them.
        size: examples of each batch, which are static then; `None` where they differ.
    """
    import tensorflow as tf

    def signature(array: np.ndarray) -> tf.TensorSpec:
        # Lengths differ from bucket to bucket; the rest is static.
        shape = (size, *(None,) * (array.ndim > 1), *array.shape[2:])
        return tf.TensorSpec(shape, array.dtype)

    specs = tuple(
        {name: signature(array) for name, array in part.items()}
        for part in next(training_batches(maker, plan))
    )
    dataset = tf.data.Dataset.from_generator(
        lambda: training_batches(maker, plan), output_signature=specs
    )
    # The thread that tunes such numbers holds up the end of the data until it next
    # wakes, which is up to a minute later.
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.prefetch(AHEAD).with_options(options)
