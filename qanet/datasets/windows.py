"""The stretches of context that a model reads: around an answer, or all of it."""

from dataclasses import dataclass

import numpy as np

from qanet.config import DataConfig
from qanet.datasets.features import Features
from qanet.models.limits import ReadingLimits


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


def training_windows(features: Features, config: DataConfig, seed: int) -> Windows:
    """One window an example, around its answer where the context is too long.

    The window's place is drawn under the seed, so that the answer's place within it
    says nothing. Examples without an answer, or with one of more than
    `config.answer_limit` tokens, cannot be trained on and get none.

    Args:
        features: the examples.
        config: gives the limits; with `no_answer` impossible examples are trained on
            too, and their windows may be anywhere.
        seed: fixes the windows' places.
    """
    lengths = features.context_lengths
    starts, ends = features.starts.astype(np.int64), features.ends.astype(np.int64)
    usable = (starts >= 0) & (ends - starts < config.answer_limit)
    if config.no_answer:
        usable |= features.impossible
        # No answer binds the window: its end is -1 and its start behind the context.
        starts = np.where(features.impossible, lengths, starts)
    examples = np.flatnonzero(usable)
    starts, ends, lengths = starts[examples], ends[examples], lengths[examples]
    limit = config.context_limit
    lowest = np.maximum(0, ends - limit + 1)
    highest = np.maximum(lowest, np.minimum(starts, lengths - limit))
    random = np.random.default_rng(seed).random(len(examples))
    offsets = lowest + (random * (highest - lowest + 1)).astype(np.int64)
    return Windows(examples, offsets, np.minimum(lengths, limit))


def reading_windows(
    features: Features, examples: np.ndarray, limits: ReadingLimits
) -> Windows:
    """Windows that cover the whole context of each of the given examples."""
    windows, lengths = [], features.context_lengths[examples].tolist()
    for example, length in zip(examples, lengths, strict=True):
        offset = 0
        while True:
            windows.append((example, offset, min(length - offset, limits.window)))
            if offset + limits.window >= length:
                break
            offset += limits.stride
    columns = np.array(windows, dtype=np.int64).reshape(-1, 3).T
    return Windows(*columns)
