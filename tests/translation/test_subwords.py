"""Tests of qanet.translation.subwords."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qanet.errors import UserError
from qanet.translation.subwords import BEGIN, END, Subwords, train_subwords

TEXTS = [
    f"{name} lives in the {adjective} house."
    for name in ("Zoë", "Bo", "Amélie", "東京")
    for adjective in ("red", "green", "old", "new")
]


@pytest.fixture(scope="module")
def subwords():
    return train_subwords(TEXTS, 60, seed=1)


def test_sentences_come_back(subwords):
    assert subwords.decode(subwords.encode(TEXTS)) == TEXTS


@given(st.lists(st.text(alphabet="Zoë lives in red 東京.", max_size=30), max_size=4))
def test_any_known_letters_come_back_but_for_spaces(subwords, texts):
    expected = [" ".join(text.split()) for text in texts]
    assert subwords.decode(subwords.encode(texts)) == expected


@given(st.text(max_size=20))
def test_any_text_is_encoded(subwords, text):
    (pieces,) = subwords.encode([text])
    assert all(0 < piece < len(subwords) for piece in pieces)
    assert not {BEGIN, END} & set(pieces)


def test_nothing_after_the_end_is_decoded(subwords):
    (pieces,) = subwords.encode(["Zoë lives"])
    row = [BEGIN, *pieces, END, *pieces, 0, 0]
    assert subwords.decode([row, [END, *pieces], []]) == ["Zoë lives", "", ""]


def test_there_are_at_most_so_many(subwords):
    assert 20 < len(subwords) <= 60
    assert len(train_subwords(TEXTS, 100_000, seed=1)) < 200


@pytest.mark.parametrize(
    ("texts", "pieces", "message"),
    [
        (["abcdefghijklmnopqrstuvwxyz"], 10, "^model.pieces=10: are fewer than"),
        (["a " * 3000], 60, "^data: no sub-words can be made"),
    ],
)
def test_texts_of_which_no_sub_words_are_made(texts, pieces, message):
    with pytest.raises(UserError, match=message):
        train_subwords(texts, pieces, seed=1)


def test_saved_and_loaded(subwords, tmp_path):
    path = tmp_path / "subwords.model"
    subwords.save(path)
    assert Subwords.load(path).encode(TEXTS) == subwords.encode(TEXTS)


@pytest.mark.parametrize("content", [b"", b"no model", None])
def test_what_is_no_model_is_refused(subwords, tmp_path, content):
    path = tmp_path / "subwords.model"
    half = subwords.serialized[: len(subwords.serialized) // 2]
    path.write_bytes(half if content is None else content)
    with pytest.raises(UserError, match=r"subwords\.model: damaged"):
        Subwords.load(path)


def test_a_missing_model(tmp_path):
    with pytest.raises(UserError, match="cannot be read: No such file"):
        Subwords.load(tmp_path / "subwords.model")


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(UserError, match=r"pip install 'qanet\[translate\]'"):
        train_subwords(TEXTS, 60, seed=1)
