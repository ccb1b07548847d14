"""Tests of qanet.models.character_ids."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qanet.models.character_ids import (
    BEGIN_SENTENCE,
    END_SENTENCE,
    character_ids,
    sentence_mark,
)

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)


def test_a_word_as_the_rules_have_it():
    (numbers,) = character_ids(["Zoë"])
    assert numbers.tolist() == [259, 91, 112, 196, 172, 260] + [261] * 44
    assert numbers.dtype == np.int32


@given(st.lists(ANY_TEXT, max_size=5))
def test_a_word_is_its_first_48_bytes_between_marks(words):
    numbers = character_ids(words)
    assert numbers.shape == (len(words), 50)
    for word, row in zip(words, numbers.tolist(), strict=True):
        content = bytes(c for c in word.encode("utf-8", "ignore"))[:48]
        marked = [258, *content, 259]
        assert [n - 1 for n in row] == marked + [260] * (50 - len(marked))


@given(st.lists(st.text(max_size=12), unique=True, min_size=2))
def test_short_words_that_differ_have_other_characters(words):
    assert len({tuple(row) for row in character_ids(words).tolist()}) == len(words)


def test_marks_of_a_sentence():
    for character, byte in ((BEGIN_SENTENCE, 256), (END_SENTENCE, 257)):
        marked = sentence_mark(character)
        assert [n - 1 for n in marked] == [258, byte, 259] + [260] * 47
