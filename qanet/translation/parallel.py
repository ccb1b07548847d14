"""Pairs of sentences in two languages, and batches of them."""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from qanet.datasets.plans import NO_ITEM, PlannedBatch
from qanet.errors import UserError
from qanet.files import read_lines
from qanet.translation.config import TrainingConfig
from qanet.translation.subwords import BEGIN, END, PADDING

Pair = tuple[str, str]


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
        for number, line in enumerate(read_lines(path), start=1):
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
        self.target_pieces = targets
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

    def plan(self, steps: int, replicas: int = 1) -> list[PlannedBatch]:
        """What goes together in each of some steps, under the seed.

        Args:
            steps: number of steps.
            replicas: what the size of each batch is a multiple of.

        Raises:
            UserError: a batch has not even a pair for each replica.
        """
        if self.config.batch_tokens // self.config.buckets[-1] < replicas:
            raise UserError(
                f"training.batch_tokens={self.config.batch_tokens}: is less than a "
                f"pair of {self.config.buckets[-1]} for each of {replicas} replicas; "
                "give more"
            )
        return list(islice(self._drawn(replicas), steps))

    def _drawn(self, replicas: int) -> Iterator[PlannedBatch]:
        random = np.random.default_rng(self.config.seed)
        waiting = [np.zeros(0, dtype=np.int64) for _ in self.config.buckets]
        while True:
            order = random.permutation(len(self._bucket_of))
            planned = []
            for number, length in enumerate(self.config.buckets):
                items = order[self._bucket_of[order] == number]
                items = np.concatenate([waiting[number], items])
                rows = self._rows(length) // replicas * replicas
                count = len(items) // rows
                planned += [
                    PlannedBatch(part, length, length)
                    for part in items[: count * rows].reshape(-1, rows)
                ]
                waiting[number] = items[count * rows :]
            for place in random.permutation(len(planned)):
                yield planned[place]

    def reading(self) -> list[PlannedBatch]:
        """All pairs once, those of a bucket together, the last batch filled up."""
        planned = []
        for number, length in enumerate(self.config.buckets):
            items = np.flatnonzero(self._bucket_of == number)
            rows = self._rows(length)
            for first in range(0, len(items), rows):
                part = items[first : first + rows]
                part = np.pad(part, (0, rows - len(part)), constant_values=NO_ITEM)
                planned.append(PlannedBatch(part, length, length))
        return planned

    def _rows(self, length: int) -> int:
        return self.config.batch_tokens // length

    def inputs(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """What a model reads.

        Returns:
            `source`, and `target` up to the sub-word before the next: int32
            `(rows, length)` each, of padding alone where there is no item.
        """
        sources = [[*self.sources[item], END] for item in _real(batch)]
        targets = [[BEGIN, *self.target_pieces[item]] for item in _real(batch)]
        return {"source": _padded(sources, batch), "target": _padded(targets, batch)}

    def targets(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """The sub-words that come next, `next`, int32 `(rows, length)`."""
        pieces = [[*self.target_pieces[item], END] for item in _real(batch)]
        return {"next": _padded(pieces, batch)}


def _real(batch: PlannedBatch) -> np.ndarray:
    """The items of a batch that are some; they come first."""
    return batch.items[batch.items != NO_ITEM]


def _padded(rows: Sequence[Sequence[int]], batch: PlannedBatch) -> np.ndarray:
    array = np.full((len(batch.items), batch.context_length), PADDING, dtype=np.int32)
    for number, pieces in enumerate(rows):
        array[number, : len(pieces)] = pieces
    return array
