"""Where the sentences of a text stand."""

from collections.abc import Iterator

from qanet.errors import needing

# Characters that are split at a time; the time of some texts grows with its square.
PART = 20_000


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Splits a text into sentences.

    Args:
        text: Any text; where its sentences end is told by the rules of English.

    Returns:
        The `(start, end)` of each sentence in order, in code points, end exclusive,
        without the white space around it. Every character outside is white space.

    Raises:
        UserError: The library for this is not installed.
    """
    # The library fails at white space that takes several bytes, such as U+2028.
    plain = "".join(
        character if character == "\n" or character.isprintable() else " "
        for character in text
    )
    spans = []
    for start, end in _boundaries(plain):
        sentence = text[start:end]
        start += len(sentence) - len(sentence.lstrip())
        end -= len(sentence) - len(sentence.rstrip())
        if start < end:
            spans.append((start, end))
    return spans


def _boundaries(text: str) -> Iterator[tuple[int, int]]:
    """The library's sentences, part by part; a part ends where a sentence does."""
    with needing("splitting sentences needs sentencex", "sentencex"):
        from sentencex import get_sentence_boundaries
    begin, size = 0, PART
    while begin < len(text):
        found = get_sentence_boundaries("en", text[begin : begin + size])
        places = [(each["start_index"], each["end_index"]) for each in found]
        if begin + size < len(text):
            # The last one may go on.
            places = places[:-1]
            if not places:
                size *= 2
                continue
        for start, end in places:
            yield begin + start, begin + end
        if begin + size >= len(text):
            return
        begin, size = begin + places[-1][1], PART
