"""Batches of static shape: which items go together, in which order, padded how.

The plan is made of index arrays alone, so that every backend, with or without tf.data,
gets the very same batches.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from qanet.config import ORIGINAL, DataConfig
from qanet.datasets.features import Features
from qanet.errors import UserError
from qanet.text.vocabulary import WordTable

# Evaluation reads contexts up to this many tokens whole and longer ones in windows
# that overlap by half.
READING_WINDOW = 1000

# Pairs of context tokens in a batch that is read, at most, to bound the memory: what
# self-attention holds grows with the square of the length. A window is always read.
READING_PAIRS = 8 * READING_WINDOW**2

# Contexts are about equally long up to this ratio.
ALIKE = 1.25

NO_ITEM = -1

# Items whose answers are looked for in one go, to bound the memory.
CHUNK = 1000


@dataclass(frozen=True)
class Windows:
    """The stretches of context that are read, one an item.

    Attributes:
        examples: int64 `(items,)`, the example that an item belongs to.
        offsets: int64 `(items,)`, first context token of the window.
        lengths: int64 `(items,)`, context tokens in the window.
    """

    examples: np.ndarray
    offsets: np.ndarray
    lengths: np.ndarray

    def __len__(self) -> int:
        return len(self.examples)


@dataclass(frozen=True)
class PlannedBatch:
    """Items that are read together.

    Attributes:
        items: int64 `(batch_size,)`, indices into the windows; `NO_ITEM` fills up.
        context_length: tokens that contexts are padded to.
        question_length: tokens that questions are padded or cut to.
    """

    items: np.ndarray
    context_length: int
    question_length: int


def training_windows(features: Features, config: DataConfig, seed: int) -> Windows:
    """One window an example, around its answer where the context is too long.

    The window's place is drawn under the seed, so that the answer's place within it
    says nothing. Examples without an answer, or with one of more than
    `config.answer_limit` tokens, cannot be trained on and get none.
    """
    lengths = features.context_lengths
    starts, ends = features.starts.astype(np.int64), features.ends.astype(np.int64)
    usable = (starts >= 0) & (ends - starts < config.answer_limit)
    examples = np.flatnonzero(usable)
    starts, ends, lengths = starts[examples], ends[examples], lengths[examples]
    limit = config.context_limit
    lowest = np.maximum(0, ends - limit + 1)
    highest = np.maximum(lowest, np.minimum(starts, lengths - limit))
    random = np.random.default_rng(seed).random(len(examples))
    offsets = lowest + (random * (highest - lowest + 1)).astype(np.int64)
    return Windows(examples, offsets, np.minimum(lengths, limit))


def reading_windows(features: Features, examples: np.ndarray) -> Windows:
    """Windows that cover the whole context of each of the given examples."""
    stride = READING_WINDOW // 2
    windows = []
    for example in examples:
        length = features.context_length(example)
        offset = 0
        while True:
            windows.append((example, offset, min(length - offset, READING_WINDOW)))
            if offset + READING_WINDOW >= length:
                break
            offset += stride
    columns = np.array(windows, dtype=np.int64).reshape(-1, 3).T
    return Windows(*columns)


def plan_training(
    windows: Windows,
    sources: dict[str, int],
    config: DataConfig,
    batch_size: int,
    steps: int,
    seed: int,
) -> list[PlannedBatch]:
    """The batches of a whole training run.

    Every epoch is drawn and shuffled anew. An item waits in its bucket until the bucket
    holds a batch; what is left at the end of an epoch waits for the next, so nothing
    is lost.

    Args:
        windows: the items.
        sources: examples of each training set, by name, in the order of the features.
        config: gives the buckets and the sets' weights.
        batch_size: items in a batch.
        steps: batches.
        seed: fixes the plan.

    Raises:
        UserError: there are no items of a set that has a weight.
    """
    random = np.random.default_rng(seed)
    epochs = _epochs(_items_of_sources(windows, sources, config), config.mix, random)
    buckets = np.array(config.buckets)
    bucket_of = np.searchsorted(buckets, windows.lengths)
    waiting = [np.zeros(0, dtype=np.int64) for _ in buckets]
    plan: list[PlannedBatch] = []
    while len(plan) < steps:
        order = next(epochs)
        full = []
        for bucket, length in enumerate(buckets):
            (places,) = np.nonzero(bucket_of[order] == bucket)
            queue = np.concatenate([waiting[bucket], order[places]])
            places = np.concatenate([np.full(len(waiting[bucket]), -1), places])
            count = len(queue) // batch_size * batch_size
            waiting[bucket] = queue[count:]
            for first in range(0, count, batch_size):
                last = first + batch_size
                batch = PlannedBatch(
                    queue[first:last], int(length), config.question_limit
                )
                full.append((places[last - 1], batch))
        full.sort(key=lambda entry: entry[0])
        plan += [batch for _, batch in full]
    return plan[:steps]


def _items_of_sources(
    windows: Windows, sources: dict[str, int], config: DataConfig
) -> dict[str, np.ndarray]:
    """The items of each training set that has a weight."""
    ends = np.cumsum(list(sources.values()))
    source_of = np.searchsorted(ends, windows.examples, side="right")
    items = {}
    for number, name in enumerate(sources):
        if name in config.mix:
            items[name] = np.flatnonzero(source_of == number)
            if not len(items[name]):
                files = {ORIGINAL: config.train, **config.augmented}
                raise UserError(
                    f"{config.features or files[name]}: {name} has no answer of at "
                    f"most data.answer_limit={config.answer_limit} tokens; give "
                    "another file or raise it"
                )
    return items


def _epochs(
    items: dict[str, np.ndarray],
    weights: dict[str, float],
    random: np.random.Generator,
) -> Iterator[np.ndarray]:
    """The items of each epoch, in the order in which they take their turns.

    An epoch has all of the original items, and so many of each other set that they are
    to the original ones as their weights are. Of these, none comes again before all
    others of its set had their turn.
    """
    original = items[ORIGINAL]
    waiting = {name: items[name][:0] for name in weights if name != ORIGINAL}
    while True:
        drawn = [original]
        for name, queue in waiting.items():
            count = round(len(original) * weights[name] / weights[ORIGINAL])
            while len(queue) < count:
                queue = np.concatenate([queue, random.permutation(items[name])])
            drawn.append(queue[:count])
            waiting[name] = queue[count:]
        yield random.permutation(np.concatenate(drawn))


def plan_reading(
    windows: Windows,
    question_lengths: np.ndarray,
    config: DataConfig,
    batch_size: int,
) -> list[PlannedBatch]:
    """Batches that read every item once; the last of a shape is filled up.

    Rare shapes are joined, so that few are compiled.

    Args:
        windows: the items.
        question_lengths: tokens of each item's question.
        config: gives the buckets; longer texts get further ones, each of twice the
            size, so no text is cut.
        batch_size: items in a batch, at most; fewer where `READING_PAIRS` says so.
    """
    context_buckets = _extend(config.buckets, READING_WINDOW)
    context_buckets[-1] = max(config.buckets[-1], READING_WINDOW)
    question_buckets = _extend((config.question_limit,), int(question_lengths.max()))
    shapes = np.stack(
        [
            context_buckets[np.searchsorted(context_buckets, windows.lengths)],
            question_buckets[np.searchsorted(question_buckets, question_lengths)],
        ],
        axis=1,
    )
    # A shape that fills no batch is not worth its compilation: such items are padded to
    # the longest of them and read together.
    _, shape_of, counts = np.unique(
        shapes, axis=0, return_inverse=True, return_counts=True
    )
    rare = counts[shape_of.reshape(-1)] < batch_size
    shapes[rare] = shapes[rare].max(axis=0, initial=0)
    plan = []
    for context_length, question_length in np.unique(shapes, axis=0):
        same = (shapes == (context_length, question_length)).all(axis=1)
        items = np.flatnonzero(same)
        rows = min(batch_size, max(1, READING_PAIRS // int(context_length) ** 2))
        for first in range(0, len(items), rows):
            batch = np.full(rows, NO_ITEM, dtype=np.int64)
            part = items[first : first + rows]
            batch[: len(part)] = part
            plan.append(PlannedBatch(batch, int(context_length), int(question_length)))
    return plan


def plan_reading_any_shape(
    windows: Windows, question_lengths: np.ndarray, batch_size: int
) -> list[PlannedBatch]:
    """Batches that read every item once, of items that are about equally long.

    For a reader to which a new shape costs nothing: little is padded.

    Args:
        windows: the items.
        question_lengths: tokens of each item's question.
        batch_size: items in a batch, at most; fewer where `READING_PAIRS` says so.
    """
    order = np.argsort(windows.lengths, kind="stable")
    plan = []
    while len(order):
        lengths = windows.lengths[order]
        alike = int(np.searchsorted(lengths, ALIKE * lengths[0], side="right"))
        longest = max(1, int(lengths[alike - 1]))
        rows = min(alike, batch_size, max(1, READING_PAIRS // longest**2))
        items, order = order[:rows], order[rows:]
        context_length = max(1, int(lengths[rows - 1]))
        question_length = max(1, int(question_lengths[items].max()))
        plan.append(PlannedBatch(items, context_length, question_length))
    return plan


def _extend(buckets: Sequence[int], longest: int) -> np.ndarray:
    buckets = list(buckets)
    while buckets[-1] < longest:
        buckets.append(2 * buckets[-1])
    return np.array(buckets)


class BatchMaker:
    """Turns planned batches into a model's inputs and targets.

    Args:
        features: tokenised examples.
        table: what the vocabulary makes of the words of `features`.
        windows: the items that plans speak of.
        label_noise: probability that an answer whose words stand several times in its
            window was marked at a wrong one of these places.
    """

    def __init__(
        self,
        features: Features,
        table: WordTable,
        windows: Windows,
        label_noise: float = 0.0,
    ):
        self.features = features
        self.table = table
        self.windows = windows
        self.label_noise = label_noise
        contexts = features.context_of[windows.examples]
        self._context_begins = features.context_splits[contexts] + windows.offsets
        self._question_begins = features.question_splits[windows.examples]
        self._question_lengths = features.question_lengths[windows.examples]
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
                found[begin + int(row)] = places[rows == row]
        return found

    def inputs(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """The model's inputs, as `qanet.models.inputs` describes them."""
        real = batch.items != NO_ITEM
        context = _padded(
            self.features.context_words,
            self._context_begins[batch.items],
            np.where(real, self.windows.lengths[batch.items], 0),
            batch.context_length,
        )
        question = _padded(
            self.features.question_words,
            self._question_begins[batch.items],
            np.where(real, self._question_lengths[batch.items], 0),
            batch.question_length,
        )
        return {
            "context_words": self.table.rows[context],
            "context_characters": self.table.characters[context],
            "question_words": self.table.rows[question],
            "question_characters": self.table.characters[question],
        }

    def targets(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """Weights of the window's tokens as start and as end, which sum to one.

        All weight is on the marked token, but for the `label_noise` that the other
        places of the answer's words share (see `qanet.training.loss`).

        Returns:
            float32 `(batch, context_length)` each.
        """
        items, rows = batch.items, np.arange(len(batch.items))
        starts, ends = np.zeros((2, len(rows), batch.context_length), dtype=np.float32)
        starts[rows, self._starts[items]] = 1.0
        ends[rows, self._ends[items]] = 1.0
        for row, item in enumerate(items):
            if item in self._other_places:
                places = self._other_places[item]
                size = self._ends[item] - self._starts[item]
                for weights, others in ((starts, places), (ends, places + size)):
                    weights[row] *= 1.0 - self.label_noise
                    weights[row, others] = self.label_noise / len(others)
        return {"start_logits": starts, "end_logits": ends}


def _padded(
    flat: np.ndarray, begins: np.ndarray, lengths: np.ndarray, size: int
) -> np.ndarray:
    """Rows of `flat` from `begins`, cut or padded with 0 to `size`."""
    positions = np.arange(size)
    real = positions < lengths[:, None]
    rows = np.zeros(real.shape, dtype=flat.dtype)
    rows[real] = flat[(begins[:, None] + positions)[real]]
    return rows


def training_batches(
    maker: BatchMaker, plan: Sequence[PlannedBatch]
) -> Iterator[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """The inputs and targets of each batch of a plan, in order."""
    for batch in plan:
        yield maker.inputs(batch), maker.targets(batch)


def training_dataset(maker: BatchMaker, plan: Sequence[PlannedBatch]):
    """`training_batches` as a `tf.data.Dataset` that works ahead."""
    import tensorflow as tf

    def signature(array: np.ndarray) -> tf.TensorSpec:
        # Lengths differ from bucket to bucket; the rest is static.
        shape = array.shape[:1] + (None,) * (array.ndim > 1) + array.shape[2:]
        return tf.TensorSpec(shape, array.dtype)

    specs = tuple(
        {name: signature(array) for name, array in part.items()}
        for part in next(training_batches(maker, plan))
    )
    dataset = tf.data.Dataset.from_generator(
        lambda: training_batches(maker, plan), output_signature=specs
    )
    return dataset.prefetch(tf.data.AUTOTUNE)
