"""Samples of a vocabulary, for the sampled softmax.

The more frequent a word, the more often it is drawn: with the vocabulary in falling
order of frequency, word k (from 0) of n has the probability log((k + 2) / (k + 1)) /
log(n + 1), close to Zipf's law. Words are drawn until so many different ones are found.
NumPy draws them, so they are the same on every backend.
"""

import numpy as np


def draw_sample(
    words: int, count: int, random: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Draws words that differ from one another.

    Args:
        words: size of the vocabulary.
        count: how many, at most all.
        random: draws.

    Returns:
        int32 `(count,)`, and how many draws it took to find them; infinitely many for
        all words.
    """
    if count == words:
        return np.arange(words, dtype=np.int32), np.inf
    drawn = np.zeros(0, dtype=np.int32)
    while True:
        size = max(2 * count, len(drawn))
        powers = np.exp(random.random(size) * np.log(words + 1.0))
        # Rounding may give the very end.
        more = np.minimum(powers.astype(np.int32), words) - 1
        drawn = np.concatenate([drawn, more])
        _, firsts = np.unique(drawn, return_index=True)
        if len(firsts) >= count:
            firsts = np.sort(firsts)[:count]
            return drawn[firsts], float(firsts[-1] + 1)


def log_expected_counts(numbers: np.ndarray, words: int, draws: float) -> np.ndarray:
    """The logarithm of how often a word is expected in a sample: 1 - (1 - p)^draws.

    Args:
        numbers: integers of any shape, the words' numbers.
        words: size of the vocabulary.
        draws: how many draws the sample took.

    Returns:
        float32 of the shape of `numbers`.
    """
    numbers = np.asarray(numbers, dtype=np.float64)
    p = np.log1p(1.0 / (numbers + 1.0)) / np.log(words + 1.0)
    return np.log(-np.expm1(draws * np.log1p(-p))).astype(np.float32)
