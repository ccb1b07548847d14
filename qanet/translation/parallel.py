"""Pairs of sentences in two languages, and batches of them."""

import gzip
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from qanet.errors import UserError, reading_text
from qanet.translation.config import TrainingConfig
from qanet.translation.subwords import BEGIN, END, PADDING

Pair = tuple[str, str]
Batch = tuple[dict[str, np.ndarray], np.ndarray]


def read_pairs(paths: Sequence[str], reverse: bool = False) -> list[Pair]:
    """Reads pairs, each one once.

    Args:
        paths: files with a pair a line, a tab between the two; what follows a second
            tab is not read. UTF-8, plain or `.gz`.
        reverse: give the second language first.

    Raises:
        UserError: a file cannot be read, or a line is no pair.
    """
    pairs = {}
    for path in paths:
        for number, line in enumerate(_lines(path), start=1):
            source, tab, rest = line.partition("\t")
            target = rest.partition("\t")[0]
            if not tab or not source.strip() or not target.strip():
                raise UserError(
                    f"{path}: line {number} is no pair; write two texts with a tab "
                    "between"
                )
            pair = (source.strip(), target.strip())
            pairs[pair[::-1] if reverse else pair] = None
    return list(pairs)


def _lines(path: str) -> Iterator[str]:
    opened = gzip.open if str(path).endswith(".gz") else open
    with reading_text(path):
        try:
            with opened(path, "rt", encoding="utf-8-sig", newline="\n") as file:
                for line in file:
                    yield line.rstrip("\r\n")
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise UserError(f"{path}: is not a whole gzip file") from None


def split_held_out(pairs: Sequence[Pair], count: int) -> tuple[list[Pair], list[Pair]]:
    """Keeps some pairs from the training.

    Which ones follows from the texts alone. Pairs that share a side with one that is
    held out are left out of the training too.

    Returns:
        The pairs to train on, and those that are held out.

    Raises:
        UserError: there are too few pairs.
    """
    # Alike in both directions, so that neither trains on what the other one tests.
    by_hash = sorted(
        pairs,
        key=lambda pair: hashlib.sha256("\t".join(sorted(pair)).encode()).digest(),
    )
    held_out = by_hash[:count]
    sources = {source for source, _ in held_out}
    targets = {target for _, target in held_out}
    train = [
        pair for pair in pairs if pair[0] not in sources and pair[1] not in targets
    ]
    if not train:
        raise UserError(
            f"{len(pairs)} pairs are too few where training.held_out={count}; give "
            "more data or hold out less"
        )
    return train, held_out


class PairBatches:
    """Batches of about equal numbers of sub-words, each as long as its bucket.

    Args:
        sources, targets: the sub-words of each pair, without marks.
        config: gives buckets, size of a batch and seed.

    Attributes:
        left_out: number of pairs that no bucket holds.
    """

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        config: TrainingConfig,
    ):
        self.sources = sources
        self.targets = targets
        self.config = config
        # Either side has one mark more.
        lengths = np.array(
            [max(map(len, pair)) + 1 for pair in zip(sources, targets, strict=True)]
        )
        self._bucket_of = np.searchsorted(config.buckets, lengths)
        self.left_out = int((self._bucket_of == len(config.buckets)).sum())
        if self.left_out == len(lengths):
            raise UserError(
                f"no pair has at most {config.buckets[-1] - 1} sub-words a side; "
                "give longer training.buckets"
            )

    def training(self, first: int, last: int) -> Iterator[Batch]:
        """The batches of some steps; which ones follows from the seed.

        Args:
            first, last: number of the first step, from 0, and of the one after the
                last.
        """
        for items, bucket in islice(self._plan(), first, last):
            yield self.batch(items, bucket)

    def _plan(self) -> Iterator[tuple[np.ndarray, int]]:
        """Endless: items that go together, and their bucket's length."""
        random = np.random.default_rng(self.config.seed)
        waiting = [np.zeros(0, dtype=np.int64) for _ in self.config.buckets]
        while True:
            order = random.permutation(len(self._bucket_of))
            planned = []
            for number, length in enumerate(self.config.buckets):
                items = order[self._bucket_of[order] == number]
                items = np.concatenate([waiting[number], items])
                rows = self.config.batch_tokens // length
                count = len(items) // rows
                planned += [
                    (part, length) for part in items[: count * rows].reshape(-1, rows)
                ]
                waiting[number] = items[count * rows :]
            for place in random.permutation(len(planned)):
                yield planned[place]

    def reading(self) -> Iterator[Batch]:
        """All pairs once, those of a bucket together, the last batch filled up."""
        for number, length in enumerate(self.config.buckets):
            items = np.flatnonzero(self._bucket_of == number)
            rows = self.config.batch_tokens // length
            for first in range(0, len(items), rows):
                yield self.batch(items[first : first + rows], length, rows)

    def batch(self, items: np.ndarray, length: int, rows: int = 0) -> Batch:
        """The inputs of a model and what it should say.

        Args:
            items: numbers of pairs.
            length: what they are padded to.
            rows: rows of the batch, at least one for each item; the others are empty.

        Returns:
            `source` and `target`, and the target one sub-word further: int32
            `(rows, length)` each.
        """
        rows = max(rows, len(items))
        source, before, after = np.full((3, rows, length), PADDING, dtype=np.int32)
        for row, item in enumerate(items):
            pieces = [*self.sources[item], END]
            source[row, : len(pieces)] = pieces
            pieces = [BEGIN, *self.targets[item], END]
            before[row, : len(pieces) - 1] = pieces[:-1]
            after[row, : len(pieces) - 1] = pieces[1:]
        return {"source": source, "target": before}, after
