"""Batches of about equal numbers of tokens, for items that have one length."""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from qanet.datasets.plans import PlannedBatch, filled_up
from qanet.errors import UserError
from qanet.settings import LARGEST


class LengthBuckets:
    """Items in buckets by their length, and plans of batches from one bucket each.

    Args:
        lengths: tokens of each item, integers `(items,)`.
        buckets: lengths that items are padded to, in rising order.
        batch_tokens: tokens of a batch, padding included, at most; not less than the
            last bucket.
        seed: fixes the plan.

    Attributes:
        left_out: number of items that no bucket holds.
    """

    def __init__(
        self, lengths: np.ndarray, buckets: Sequence[int], batch_tokens: int, seed: int
    ):
        self.buckets = buckets
        self.batch_tokens = batch_tokens
        self.seed = seed
        self._bucket_of = np.searchsorted(buckets, lengths)
        self.left_out = int((self._bucket_of == len(buckets)).sum())

    def plan(self, steps: int, replicas: int = 1) -> list[PlannedBatch]:
        """What goes together in each of some steps; each epoch is shuffled anew.

        An item waits in its bucket until that holds a batch, if need be until the next
        epoch.

        Args:
            steps: number of steps.
            replicas: what the size of each batch is a multiple of.

        Raises:
            UserError: a batch has not even an item for each replica, or there are more
                items than can be planned.
        """
        if self._rows(self.buckets[-1]) < replicas:
            raise UserError(
                f"training.batch_tokens={self.batch_tokens}: is less than "
                f"{self.buckets[-1]}, the longest of training.buckets, for each of "
                f"{replicas} replicas; give more"
            )
        plan, items = [], 0
        for batch in islice(self._drawn(replicas), steps):
            items += len(batch.items)
            if items > LARGEST:
                raise UserError(
                    f"training.steps={steps}: all items are drawn before the first "
                    f"step, and {LARGEST:,} come to {len(plan):,} steps; give no more"
                )
            plan.append(batch)
        return plan

    def _drawn(self, replicas: int) -> Iterator[PlannedBatch]:
        random = np.random.default_rng(self.seed)
        waiting = [np.zeros(0, dtype=np.int64) for _ in self.buckets]
        while True:
            order = random.permutation(len(self._bucket_of))
            planned = []
            for number, length in enumerate(self.buckets):
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
        """All items that a bucket holds once, those of a bucket together.

        The last batch of each bucket is filled up.
        """
        planned = []
        for number, length in enumerate(self.buckets):
            items = np.flatnonzero(self._bucket_of == number)
            rows = self._rows(length)
            for first in range(0, len(items), rows):
                part = items[first : first + rows]
                planned.append(PlannedBatch(filled_up(part, rows), length, length))
        return planned

    def _rows(self, length: int) -> int:
        return self.batch_tokens // length
