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
    """The library's sentences, part by part."""
    with needing("splitting sentences needs sentencex", "sentencex"):
        from sentencex import get_sentence_boundaries
    begin, size = 0, PART
    while begin < len(text):
        end, is_whole = _end_of_part(text, begin, begin + size)
        found = get_sentence_boundaries("en", text[begin:end])
        places = [
            (begin + one["start_index"], begin + one["end_index"]) for one in found
        ]
        if not is_whole:
            places = places[:-1]  # The last one may go on.
            end = places[-1][1] if places else begin
        yield from places
        size = PART if end > begin else 2 * size
        begin = end


def _end_of_part(text: str, begin: int, end: int) -> tuple[int, bool]:
    """Where a part ends, at most at `end`, and whether a sentence ends there too.

    At the end of a paragraph, where there is one: the library pairs the quotation marks
    of a paragraph, and does not split between them. Else before a mark that has no
    other.
    """
    if end >= len(text):
        return len(text), True
    if (paragraph := text.rfind("\n\n", begin, end)) > begin:
        return paragraph + 2, True
    if text.count('"', begin, end) % 2:
        end = text.rfind('"', begin, end)
    return end, False
