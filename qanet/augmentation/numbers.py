"""Numbers in a text, which tokens cut at their points: "10,000" is three tokens."""

import re

BEFORE = re.compile(r"[0-9][.,:]")
AFTER = re.compile(r"[.,:][0-9]")


def splits_number(text: str, start: int, end: int) -> bool:
    """Whether a span begins or ends within a number: the 3 of 3.5, the 10 of 10,000.

    Args:
        text: the text.
        start, end: the span, at least one character long.
    """
    begins = text[start].isdecimal() and BEFORE.fullmatch(
        text[max(start - 2, 0) : start]
    )
    ends = text[end - 1].isdecimal() and AFTER.fullmatch(text[end : end + 2])
    return bool(begins or ends)
