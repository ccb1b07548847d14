"""Pairs of sentences in two languages, and batches of them."""

import hashlib
from collections.abc import Sequence

import numpy as np

from qanet.datasets.length_buckets import LengthBuckets
from qanet.datasets.plans import PlannedBatch
from qanet.errors import UserError
from qanet.files import read_lines
from qanet.translation.config import TranslationLearningConfig
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


class PairBatches(LengthBuckets):
    """Batches of pairs, each as long as its bucket.

    Args:
        sources, targets: the sub-words of each pair, without marks.
        config: gives buckets, size of a batch and seed.

    Raises:
        UserError: no pair fits.
    """

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        config: TranslationLearningConfig,
    ):
        # Either side has one mark more.
        lengths = np.array(
            [max(map(len, pair)) + 1 for pair in zip(sources, targets, strict=True)]
        )
        super().__init__(lengths, config.buckets, config.batch_tokens, config.seed)
        self.sources = sources
        self.target_pieces = targets
        if self.left_out == len(lengths):
            raise UserError(
                f"no pair has at most {config.buckets[-1] - 1} sub-words a side; "
                "give longer training.buckets"
            )

    def inputs(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """What a model reads.

        Returns:
            `source`, and `target` up to the sub-word before the next: int32
            `(rows, length)` each, of padding alone where there is no item.
        """
        items = batch.items[batch.real]
        sources = [[*self.sources[item], END] for item in items]
        targets = [[BEGIN, *self.target_pieces[item]] for item in items]
        return {"source": _padded(sources, batch), "target": _padded(targets, batch)}

    def targets(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """The sub-words that come next, `next`, int32 `(rows, length)`."""
        items = batch.items[batch.real]
        pieces = [[*self.target_pieces[item], END] for item in items]
        return {"next": _padded(pieces, batch)}


def _padded(rows: Sequence[Sequence[int]], batch: PlannedBatch) -> np.ndarray:
    array = np.full((len(batch.items), batch.context_length), PADDING, dtype=np.int32)
    for number, pieces in enumerate(rows):
        array[number, : len(pieces)] = pieces
    return array
