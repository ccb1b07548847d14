"""Tests of qanet.pretraining.word_vocabulary."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qanet.errors import UserError
from qanet.pretraining.word_vocabulary import MARKS, WordVocabulary
from qanet.text.tokenizer import tokenize

SENTENCES = [["b", "a", "c"], ["c", "b", "d"], ["c", "</S>"], []]


def test_the_most_frequent_words_come_first():
    vocabulary = WordVocabulary.count(SENTENCES, 6)
    assert vocabulary.words == ["<S>", "</S>", "<UNK>", "c", "b", "a"]
    numbers = vocabulary.numbers(["a", "d", "c", "<UNK>"])
    assert numbers.dtype == np.int32
    assert numbers.tolist() == [5, 2, 3, 2]
    assert len(WordVocabulary.count(SENTENCES, 100)) == 7


@given(st.lists(st.text(st.characters(exclude_categories=()))), st.integers(3, 20))
def test_what_is_stored_is_read_again(texts, size):
    vocabulary = WordVocabulary.count(map(tokenize, texts), size)
    assert len(vocabulary) <= size
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "words.txt"
        vocabulary.save(path)
        assert WordVocabulary.load(path).words == vocabulary.words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\nb\nc\n", "the first words must be <S>, </S>, <UNK>"),
        ("\n".join([*MARKS, "a", "a"]), "words must differ"),
        ("", "the first words must be"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_named(tmp_path, text, message):
    path = tmp_path / "words.txt"
    path.write_text(text)
    with pytest.raises(UserError, match=rf"words\.txt: not a vocabulary: {message}"):
        WordVocabulary.load(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "words.txt"
    with pytest.raises(UserError, match=r"words\.txt: cannot be read"):
        WordVocabulary.load(path)
    path.write_bytes(b"\xff")
    with pytest.raises(UserError, match=r"words\.txt: is not UTF-8"):
        WordVocabulary.load(path)
