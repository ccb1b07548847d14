"""What a model is fed: the inputs and targets of planned batches, of static shape."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from qanet.datasets.contextual import ContextualVectors, contextual_vectors
from qanet.datasets.features import Features
from qanet.datasets.plans import NO_ITEM, PlannedBatch
from qanet.datasets.soft_targets import TeacherTargets
from qanet.datasets.squad import Example
from qanet.datasets.windows import Windows
from qanet.text.encoders import TextEncoder

# Items whose answers are looked for in one go, to bound the memory.
CHUNK = 1000


class Maker(Protocol):
    """Makes what a model is trained on."""

    def inputs(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """The model's inputs."""

    def targets(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """What it is to say to them."""


class BatchMaker:
    """Turns planned batches into a model's inputs and targets.

    Args:
        features: tokenised examples.
        table: the columns that the text encoder makes of the words of `features`.
        windows: the items that plans speak of.
        label_noise: probability that an answer whose words stand several times in its
            window was marked at a wrong one of these places.
        no_answer: whether the model can say that the context does not answer.
        teacher: what a teacher says of the examples, for models that learn from one.
        contextual: the tokens' contextual vectors, for models that read them.
    """

    def __init__(
        self,
        features: Features,
        table: dict[str, np.ndarray],
        windows: Windows,
        label_noise: float = 0.0,
        no_answer: bool = False,
        teacher: TeacherTargets | None = None,
        contextual: ContextualVectors | None = None,
    ):
        self.features = features
        self.table = table
        self.windows = windows
        self.label_noise = label_noise
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
        self._other_places = self._find_other_places() if label_noise else {}

    def _find_other_places(self) -> dict[int, np.ndarray]:
        """Where else in its window the words of an item's answer stand.

        Returns:
            The first tokens of these places, by item, for the items that have any.
        """
        found = {}
        for begin in range(0, len(self.windows), CHUNK):
            items = np.arange(begin, min(begin + CHUNK, len(self.windows)))
            items = items[~self._impossible[items]]
            if not len(items):
                continue
            starts, lengths = self._starts[items], self.windows.lengths[items]
            sizes = self._ends[items] - starts
            # The padding, which no answer holds, is as long as any answer.
            words = _padded(
                self.features.context_words,
                self._context_begins[items],
                lengths,
                lengths.max() + sizes.max(),
            )
            first_words = words[np.arange(len(items)), starts]
            rows, places = np.nonzero(words == first_words[:, None])
            for i in range(1, sizes.max() + 1):
                same = words[rows, places + i] == words[rows, starts[rows] + i]
                same |= i > sizes[rows]
                rows, places = rows[same], places[same]
            other = places != starts[rows]
            rows, places = rows[other], places[other]
            for row in np.unique(rows):
                found[int(items[row])] = places[rows == row]
        return found

    def inputs(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """The model's inputs, as `qanet.models.inputs` describes them."""
        real = batch.items != NO_ITEM
        places = {
            "context": (
                self._context_begins[batch.items],
                np.where(real, self.windows.lengths[batch.items], 0),
                batch.context_length,
            ),
            "question": (
                self._question_begins[batch.items],
                np.where(real, self._question_lengths[batch.items], 0),
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
        """Weights of the window's tokens as start and as end, which sum to one.

        All weight is on the marked token, but for the `label_noise` that the other
        places of the answer's words share (see `qanet.training.loss`).

        Returns:
            float32 `(batch, context_length)` each; where the model can say that there
            is no answer, `(batch, 1 + context_length)`, that weight first. With a
            teacher also `teacher_start_logits` and `teacher_end_logits`.
        """
        items = batch.items
        impossible = self._impossible[items]
        starts, ends = np.zeros((2, len(items), batch.context_length), dtype=np.float32)
        rows = np.flatnonzero(~impossible)
        starts[rows, self._starts[items[rows]]] = 1.0
        ends[rows, self._ends[items[rows]]] = 1.0
        for row, item in enumerate(items):
            if item in self._other_places:
                places = self._other_places[item]
                size = self._ends[item] - self._starts[item]
                for weights, others in ((starts, places), (ends, places + size)):
                    weights[row] *= 1.0 - self.label_noise
                    weights[row, others] = self.label_noise / len(others)
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
            told = self.teacher.values[:, begins[row] : ends[row]]
            size = self.windows.lengths[batch.items[row]]
            first = none + offsets[row]
            both[:, row, none : none + size] = told[:, first : first + size]
            both[:, row, :none] = told[:, :none]
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


def training_dataset(maker: Maker, plan: Sequence[PlannedBatch]):
    """`training_batches` as a `tf.data.Dataset` that works ahead."""
    import tensorflow as tf

    sizes = {len(batch.items) for batch in plan}
    size = sizes.pop() if len(sizes) == 1 else None

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
