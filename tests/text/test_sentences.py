"""Tests of qanet.text.sentences."""

import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qanet.errors import UserError
from qanet.text import sentences as sentences_module
from qanet.text.sentences import sentence_spans


def sentences(text):
    return [text[start:end] for start, end in sentence_spans(text)]


def test_sentences_end_where_a_reader_ends_them():
    text = (
        " Dr. Zoë Smith paid $3.50 in the U.S. on 3 Jan. 1990. "
        '"Really?"\n\nHe said so!  '
    )
    assert sentences(text) == [
        "Dr. Zoë Smith paid $3.50 in the U.S. on 3 Jan. 1990.",
        '"Really?"',
        "He said so!",
    ]


def test_offsets_count_code_points():
    text = "🙂 Où? Ça va. 中文。"
    assert sentences(text)[0].startswith("🙂")
    assert "".join(sentences(text)).replace(" ", "") == text.replace(" ", "")


def test_a_long_text_is_split_in_parts(monkeypatch):
    plain = "The {n}. river is {n}.5 km long.\nIt 'flows' on!"
    quoted = 'He said "It is {n} now. We must go. Then rest." Then he left. It rained.'
    for sentence in (plain, quoted, f'{quoted}\n\nOne " is open.\n\n'):
        text = " ".join(sentence.format(n=n) for n in range(40))
        monkeypatch.setattr(sentences_module, "PART", 10**6)
        whole = sentence_spans(text)
        assert len(whole) > 50
        for part in (1, 7, 100, 200, 300, 1000):
            monkeypatch.setattr(sentences_module, "PART", part)
            assert sentence_spans(text) == whole


@given(st.text() | st.text(alphabet="aB. \n!?\r。\"'(1é\x00\u2028\u0085\u00a0)"))
def test_only_white_space_is_between_sentences(text):
    last = 0
    for start, end in sentence_spans(text):
        assert last <= start < end <= len(text)
        assert not text[last:start].strip()
        assert text[start:end] == text[start:end].strip()
        last = end
    assert not text[last:].strip()


@given(st.text(alphabet="aB. \n!?\r。\"'(1é\u2028)", max_size=200), st.integers(1, 50))
def test_parts_leave_nothing_out(text, part):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sentences_module, "PART", part)
        spans = sentence_spans(text)
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "".join(
        text.split()
    )
    assert all(a[1] <= b[0] for a, b in pairwise(spans))


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencex", None)
    with pytest.raises(UserError, match="pip install sentencex"):
        sentence_spans("A sentence.")


def test_a_paragraph_ends_a_sentence():
    assert sentences("A heading\n\nHe said so.") == ["A heading", "He said so."]


def test_a_line_separator_is_white_space_to_the_library_too():
    assert sentences("B\u2028.") == ["B\u2028."]
