"""Splits text into tokens and says where in the original text each one stands.

Every character has one of four classes, and the rule looks at nothing else: a token
starts at each character that is not a space, unless that character and the one before
it are both of class WORD. So words and numbers stay whole, and each punctuation mark,
symbol, ideograph or kana stands alone. The rule needs only a table look-up and a
comparison of neighbours, which lets an exported graph apply it too, bit for bit.
"""

import re
from functools import cache

import numpy as np

from qanet.text.unicode_classes import CJK_RANGES, SPACE_RANGES, WORD_RANGES

# Shows where a word may be divided, and is no part of it.
SOFT_HYPHEN = "\u00ad"

SPACE = 0  # white space, control and format characters: separate tokens
WORD = 1  # letters, marks, numbers and soft hyphens: neighbours run together
SYMBOL = 2  # everything else, unassigned characters too: stands alone
CJK = 3  # Han ideographs, hiragana and katakana: stands alone


@cache
def character_classes() -> np.ndarray:
    """The class of every code point.

    Returns:
        A read-only uint8 array of shape `(0x110000,)`: `SPACE`, `WORD`, `SYMBOL` or
        `CJK` at each code point.
    """
    classes = np.full(0x110000, SYMBOL, dtype=np.uint8)
    for number, ranges in (
        (SPACE, SPACE_RANGES),
        (WORD, WORD_RANGES),
        (CJK, CJK_RANGES),
    ):
        for first, last in _bounds(ranges):
            classes[first : last + 1] = number
    classes.flags.writeable = False
    return classes


def token_spans(text: str) -> list[tuple[int, int]]:
    """Where the tokens of a text stand.

    Args:
        text: Any string; lone surrogates are symbols like others.

    Returns:
        The `(start, end)` of each token in order, counted in code points of `text`,
        end exclusive: `text[start:end]` is the token, unchanged.
    """
    return [match.span() for match in _token_pattern().finditer(text)]


def tokenize(text: str) -> list[str]:
    """The tokens of a text, in order: `text[start:end]` of its `token_spans`."""
    return _token_pattern().findall(text)


def words_of(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    """The tokens of a text, and where they stand."""
    spans = token_spans(text)
    return [text[start:end] for start, end in spans], spans


def count_tokens(text: str) -> int:
    """How many tokens a text has; for long texts far faster than `tokenize`."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    classes = character_classes()[codes]
    word = classes == WORD
    goes_on = word[1:] & word[:-1]
    return int(np.count_nonzero(classes != SPACE) - np.count_nonzero(goes_on))


@cache
def _token_pattern() -> re.Pattern[str]:
    space, word = _regex_set(SPACE_RANGES), _regex_set(WORD_RANGES)
    return re.compile(f"[{word}]+|[^{space}{word}]")


def _regex_set(ranges: str) -> str:
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in _bounds(ranges))


def _bounds(ranges: str) -> list[tuple[int, int]]:
    """The first and the last code point of each of the written ranges."""
    pairs = (written.split("-") for written in ranges.split())
    return [(int(first, base=16), int(last, base=16)) for first, last in pairs]
