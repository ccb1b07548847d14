"""What a reader says of a context, as probabilities, and on the tokens of another."""

import numpy as np

from qanet.decoding import ContextLogits


def probabilities(logits: ContextLogits) -> np.ndarray:
    """Softmax of the start logits and of the end logits, "no answer" among them.

    Half of the logit of no answer, which is a sum of two, goes to either side.

    Returns:
        float64 `(2, 1 + tokens)`, rows that sum to one, that of no answer first; that
        is 0 where the model cannot tell. All are 0 where it can say nothing.
    """
    tokens = np.asarray(logits.tokens, np.float64)
    none = np.full((2, 1), logits.no_answer / 2)
    both = np.concatenate([none, tokens], axis=1)
    peaks = both.max(axis=1, keepdims=True)
    powers = np.exp(both - np.where(np.isfinite(peaks), peaks, 0.0))
    totals = powers.sum(axis=1, keepdims=True)
    return np.divide(powers, totals, out=np.zeros_like(powers), where=totals > 0)


def log_totals(logits: ContextLogits) -> np.ndarray:
    """Logarithm of what `probabilities` divides by, float64 `(2,)`.

    It tells contexts that compete for one question apart; 0 where there is nothing.
    """
    tokens = np.asarray(logits.tokens, np.float64)
    none = np.full((2, 1), logits.no_answer / 2)
    totals = np.logaddexp.reduce(np.concatenate([none, tokens], axis=1), axis=1)
    return np.where(np.isfinite(totals), totals, 0.0)


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
