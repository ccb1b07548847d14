"""Where the sentences of a text stand."""

from qanet.errors import needing


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
    with needing("splitting sentences needs sentencex", "sentencex"):
        from sentencex import get_sentence_boundaries
    # The library fails at white space that takes several bytes, such as U+2028.
    plain = "".join(
        character if character == "\n" or character.isprintable() else " "
        for character in text
    )
    spans = []
    for boundary in get_sentence_boundaries("en", plain):
        start, end = boundary["start_index"], boundary["end_index"]
        sentence = text[start:end]
        start += len(sentence) - len(sentence.lstrip())
        end -= len(sentence) - len(sentence.rstrip())
        if start < end:
            spans.append((start, end))
    return spans
