"""The characters of a word as ELMo numbers them (Peters et al., 2018; `Batcher` and
`UnicodeCharsVocabulary` of allenai/bilm-tf).

A word is the bytes of its UTF-8, 0 to 255, between a mark of its start, 258, and one of
its end, 259, filled up with 260 to 50 places. Of longer words the first 48 bytes count.
The words that mark a sentence's beginning and end have the one character 256 or 257 in
the place of bytes. Of all of these, one more is taken, so that 0 is left for words that
are padding.
"""

from collections.abc import Sequence

import numpy as np

# Characters of a word, and how many there are.
PLACES = 50
CHARACTERS = 261

BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, FILLING = range(257, 262)


def character_ids(words: Sequence[str]) -> np.ndarray:
    """The characters of each word.

    Half surrogate pairs, which UTF-8 does not have, are left out.

    Returns:
        int32 `(words, 50)`, from 1 to 261.
    """
    numbers = np.full((len(words), PLACES), FILLING, dtype=np.int32)
    for row, word in zip(numbers, words, strict=True):
        characters = word.encode("utf-8", "ignore")[: PLACES - 2]
        row[0] = BEGIN_WORD
        row[1 : 1 + len(characters)] = np.frombuffer(characters, dtype=np.uint8)
        row[1 : 1 + len(characters)] += 1
        row[1 + len(characters)] = END_WORD
    return numbers


def sentence_mark(character: int) -> list[int]:
    """The word that marks a sentence's beginning or end.

    Args:
        character: `BEGIN_SENTENCE` or `END_SENTENCE`.
    """
    marked = [BEGIN_WORD, character, END_WORD]
    return marked + [FILLING] * (PLACES - len(marked))
