"""Batches that several devices can share."""

from collections.abc import Mapping

import numpy as np

Arrays = Mapping[str, np.ndarray]


def divisible(inputs: Arrays, replicas: int) -> tuple[Arrays, int]:
    """The batch with rows added until the replicas divide it, and how many it had."""
    count = len(next(iter(inputs.values())))
    return {
        name: np.pad(array, [(0, -count % replicas)] + [(0, 0)] * (array.ndim - 1))
        for name, array in inputs.items()
    }, count
