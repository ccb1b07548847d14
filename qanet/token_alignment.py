"""What a reader says of its tokens, on tokens that were split in another way."""

import numpy as np


def align(found: np.ndarray, spans: np.ndarray, to: np.ndarray) -> np.ndarray:
    """Probabilities of a context's tokens, on tokens that were split in another way.

    A start goes to the token that holds its first character, or else to the next one;
    an end to the token that holds its last character, or else to the one before. None
    of it is lost, unless there is no token.

    Args:
        found: float `(2, 1 + n)`, starts and ends, that of no answer first.
        spans: int `(n, 2)`, character offsets of these tokens, rising.
        to: int `(m, 2)`, those of the other tokens.

    Returns:
        float64 `(2, 1 + m)`.
    """
    result = np.zeros((2, 1 + len(to)))
    result[:, 0] = found[:, 0]
    if len(to):
        starts = np.searchsorted(to[:, 1], spans[:, 0], side="right")
        ends = np.searchsorted(to[:, 0], spans[:, 1], side="left") - 1
        for row, (places, given) in enumerate(zip((starts, ends), found, strict=True)):
            places = 1 + np.clip(places, 0, len(to) - 1)
            np.add.at(result[row], places, given[1:])
    return result
