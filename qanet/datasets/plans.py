"""Which items are read together, in which order, padded to which lengths.

A plan is made of index arrays alone, so that every backend, with or without tf.data,
gets the very same batches.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qanet.config import ORIGINAL, DataConfig
from qanet.datasets.windows import Windows
from qanet.errors import UserError

# Pairs of tokens in a batch that is read, at most, to bound the memory: attention
# within and between the texts holds numbers for each pair. One item is always read.
READING_PAIRS = 2 * 1000**2

# Contexts are about equally long up to this ratio.
ALIKE = 1.25

NO_ITEM = -1


@dataclass(frozen=True)
class PlannedBatch:
    """Items that are read together.

    Attributes:
        items: int64 `(batch_size,)`, indices into what is read, as windows;
            `NO_ITEM` fills up.
        context_length: tokens that contexts are padded to.
        question_length: tokens that questions are padded or cut to.
    """

    items: np.ndarray
    context_length: int
    question_length: int

    @property
    def real(self) -> np.ndarray:
        """Which rows hold an item, boolean `(batch_size,)`; they come first."""
        return self.items != NO_ITEM


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
        UserError: there are no items of a set that has a weight, or its weight is so
            small that none would be drawn.
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


def sources_of(windows: Windows, sources: dict[str, int]) -> np.ndarray:
    """The number of the training set that each item is of, int64 `(items,)`.

    Args:
        windows: the items.
        sources: examples of each set, by name, in the order of the features.
    """
    ends = np.cumsum(list(sources.values()))
    return np.searchsorted(ends, windows.examples, side="right")


def _items_of_sources(
    windows: Windows, sources: dict[str, int], config: DataConfig
) -> dict[str, np.ndarray]:
    """The items of each training set that has a weight."""
    source_of = sources_of(windows, sources)
    items = {}
    for number, name in enumerate(sources):
        if name in config.mix:
            items[name] = np.flatnonzero(source_of == number)
            if not len(items[name]):
                files = {ORIGINAL: config.train, **config.augmented}
                raise UserError(
                    f"{config.packed or files[name]}: {name} has no question to "
                    "learn: none whose answer stands in its context, in at most "
                    f"data.answer_limit={config.answer_limit} tokens"
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
    counts = {
        name: round(len(original) * weights[name] / weights[ORIGINAL])
        for name in waiting
    }
    for name, count in counts.items():
        if not count:
            raise UserError(
                f"data.mix: of {name} no question would be drawn beside the "
                f"{len(original):,} of {ORIGINAL}; give it more weight"
            )
    while True:
        drawn = [original]
        for name, queue in waiting.items():
            count = counts[name]
            lacking = max(count - len(queue), 0)
            times = math.ceil(lacking / len(items[name]))
            more = (random.permutation(items[name]) for _ in range(times))
            queue = np.concatenate([queue, *more])
            drawn.append(queue[:count])
            waiting[name] = queue[count:]
        yield random.permutation(np.concatenate(drawn))


def plan_reading(
    windows: Windows,
    question_lengths: np.ndarray,
    config: DataConfig,
    batch_size: int,
    window: int,
) -> list[PlannedBatch]:
    """Batches that read every item once; the last of a shape is filled up.

    Rare shapes are joined, so that few are compiled.

    Args:
        windows: the items.
        question_lengths: tokens of each item's question.
        config: gives the buckets; longer texts get further ones, each of twice the
            size, so no text is cut.
        batch_size: items in a batch, at most; fewer where `READING_PAIRS` says so.
        window: the longest window that there may be.
    """
    context_buckets = _extend(config.buckets, window)
    context_buckets[-1] = max(config.buckets[-1], window)
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
        pairs = int(pairs_of(context_length, question_length))
        rows = min(batch_size, max(1, READING_PAIRS // pairs))
        for first in range(0, len(items), rows):
            batch = filled_up(items[first : first + rows], rows)
            plan.append(PlannedBatch(batch, int(context_length), int(question_length)))
    return plan


def plan_reading_any_shape(
    windows: Windows,
    question_lengths: np.ndarray,
    batch_size: int,
    alike: float = ALIKE,
) -> list[PlannedBatch]:
    """Batches that read every item once, of items that are about equally long.

    For a reader to which a new shape costs nothing: little is padded.

    Args:
        windows: the items.
        question_lengths: tokens of each item's question.
        batch_size: items in a batch, at most; fewer where `READING_PAIRS` says so.
        alike: how many times as long as its shortest a batch's longest window may be.
    """
    order = np.argsort(windows.lengths, kind="stable")
    lengths = windows.lengths[order]
    # An empty text is padded to one token.
    contexts, questions = np.maximum(lengths, 1), np.maximum(question_lengths[order], 1)
    plan, begin = [], 0
    while begin < len(order):
        nearest = lengths[begin : begin + batch_size]
        fitting = int(np.searchsorted(nearest, alike * nearest[0], side="right"))
        # What a batch of the first item holds, of the first two, and so on.
        longest = np.maximum.accumulate(questions[begin : begin + fitting])
        context = contexts[begin : begin + fitting]
        pairs = np.arange(1, fitting + 1) * pairs_of(context, longest)
        rows = max(1, int(np.searchsorted(pairs, READING_PAIRS, side="right")))
        items = order[begin : begin + rows]
        plan.append(PlannedBatch(items, int(context[rows - 1]), int(longest[rows - 1])))
        begin += rows
    return plan


def filled_up(items: np.ndarray, rows: int) -> np.ndarray:
    """Items with `NO_ITEM` behind them, so that they come to a multiple of `rows`."""
    return np.pad(items, (0, -len(items) % rows), constant_values=NO_ITEM)


def common_size(plan: Sequence[PlannedBatch]) -> int | None:
    """The examples of each batch; `None` where not all have as many."""
    sizes = {len(batch.items) for batch in plan}
    return sizes.pop() if len(sizes) == 1 else None


def pairs_of(context_length: Any, question_length: Any) -> Any:
    """Pairs of tokens that attention sees within and between two texts.

    Args:
        context_length, question_length: whole numbers, arrays or tensors of them.
    """
    return context_length**2 + context_length * question_length + question_length**2


def _extend(buckets: Sequence[int], longest: int) -> np.ndarray:
    buckets = list(buckets)
    while buckets[-1] < longest:
        buckets.append(2 * buckets[-1])
    return np.array(buckets)
