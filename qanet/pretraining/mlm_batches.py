"""Batches of pairs of segments with masked pieces."""

import numpy as np

from qanet.datasets.plans import PlannedBatch, filled_up
from qanet.errors import UserError
from qanet.models.bert import MARKS
from qanet.pretraining.config import MLMPretrainingConfig
from qanet.pretraining.masking import Masking
from qanet.pretraining.pairs import Sentences, draw_pairs
from qanet.text.pieces import CLS, PADDING, SEP, WordPieces

Arrays = dict[str, np.ndarray]


class MaskedBatches:
    """What a masked language model reads and is to say; a `Maker` of batches.

    Every epoch pairs are drawn anew, and pieces to predict for each pair. Both follow
    from the seed and the pair's number alone: not from when a batch is made, nor from
    which replica makes it.

    Args:
        sentences: what is read.
        vocabulary: of its pieces.
        config: gives the length, the size of a batch, and what is masked.
        seed: fixes the pairs and what is masked of them.
        count: pairs that are drawn, epoch after epoch; by default one epoch.
        part: what the sentences are for, in messages.

    Raises:
        UserError: there are no pairs.
    """

    def __init__(
        self,
        sentences: Sentences,
        vocabulary: WordPieces,
        config: MLMPretrainingConfig,
        seed: int,
        count: int | None = None,
        part: str = "to train on",
    ):
        training = config.training
        self.seed, self.rows = seed, training.batch_size
        self.length = config.data.length
        self.pieces = sentences.pieces
        self.pairs = self._drawn(sentences, count, part)
        self.masking = Masking(vocabulary, training.masked, training.whole_words)
        # Of a sequence, at most.
        self.positions = self.masking.count(self.length - MARKS)
        self._cls, self._sep, self._padding = (
            vocabulary.number_of[piece] for piece in (CLS, SEP, PADDING)
        )
        self._latest: tuple[PlannedBatch | None, Arrays] = (None, {})

    def _drawn(self, sentences: Sentences, count: int | None, part: str) -> np.ndarray:
        counts = np.diff(sentences.documents)
        if len(counts) < 2 or counts.max() < 2:
            raise UserError(
                f"--text: the {len(counts)} documents {part} are too few, or have "
                "one sentence each; give more that have two, in plain text with a "
                "blank line after each, or hold out another share (data.held_out)"
            )
        random = np.random.default_rng(self.seed)
        epochs = [draw_pairs(sentences, self.length, random)]
        drawn = len(epochs[0])
        count = count or drawn
        while drawn < count:
            epochs.append(draw_pairs(sentences, self.length, random))
            drawn += len(epochs[-1])
        return np.concatenate(epochs)[:count]

    def plan(self) -> list[PlannedBatch]:
        """All pairs in turn; the last batch is filled up."""
        items = filled_up(np.arange(len(self.pairs)), self.rows)
        return [
            PlannedBatch(part, self.length, self.length)
            for part in items.reshape(-1, self.rows)
        ]

    def inputs(self, batch: PlannedBatch) -> Arrays:
        """What the model reads.

        Returns:
            int32 `pieces` and `segments` `(rows, length)`, and `masked_positions`
            `(rows, positions)`, those of the pieces to predict; those that are left
            over are 0. Of padding alone where there is no item.
        """
        made = self._made(batch)
        return {name: made[name] for name in ("pieces", "segments", "masked_positions")}

    def targets(self, batch: PlannedBatch) -> Arrays:
        """What it is to say.

        Returns:
            int32 `labels` `(rows, positions)`, the pieces at `masked_positions`,
            padding where these are left over; and `is_random` `(rows,)`, whether the
            second segment is from another document.
        """
        made = self._made(batch)
        return {name: made[name] for name in ("labels", "is_random")}

    def _made(self, batch: PlannedBatch) -> Arrays:
        # Inputs and targets of a batch are asked for one after the other.
        latest = self._latest
        if latest[0] is not batch:
            latest = self._latest = (batch, self._make(batch))
        return latest[1]

    def _make(self, batch: PlannedBatch) -> Arrays:
        rows = len(batch.items)
        pieces = np.full((rows, self.length), self._padding, dtype=np.int32)
        segments = np.zeros((rows, self.length), dtype=np.int32)
        positions, labels = np.zeros((2, rows, self.positions), dtype=np.int32)
        is_random = np.zeros(rows, dtype=np.int32)
        for row, item in enumerate(batch.items[batch.real]):
            *bounds, is_random[row] = self.pairs[item]
            sequence, middle = self._sequence(*bounds)
            # By a key of its own: [seed, 0] would be the stream of the seed itself.
            key = np.random.SeedSequence(self.seed, spawn_key=(int(item),))
            seen, chosen = self.masking.mask(sequence, np.random.default_rng(key))
            pieces[row, : len(seen)] = seen
            segments[row, middle : len(seen)] = 1
            positions[row, : len(chosen)] = chosen
            labels[row, : len(chosen)] = sequence[chosen]
        return {
            "pieces": pieces,
            "segments": segments,
            "masked_positions": positions,
            "labels": labels,
            "is_random": is_random,
        }

    def _sequence(self, a_begin, a_end, b_begin, b_end) -> tuple[np.ndarray, int]:
        """[CLS] A [SEP] B [SEP], and the place where B begins."""
        a, b = self.pieces[a_begin:a_end], self.pieces[b_begin:b_end]
        parts = [[self._cls], a, [self._sep], b, [self._sep]]
        return np.concatenate(parts).astype(np.int32), len(a) + 2
