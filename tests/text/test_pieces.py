"""Tests of qanet.text.pieces."""

import itertools
import re
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qanet.errors import UserError
from qanet.text import pieces
from qanet.text.pieces import SPECIAL, UNKNOWN, WordPieces

LOWER = WordPieces(
    [*SPECIAL, *"zoelivsanpru.,", "zoe", "##s", "live", "東", "pa", "##ris"]
)
CASED = WordPieces([*SPECIAL, "Zoe", "zo", "##e"])


def split(text, vocabulary=LOWER):
    """Each piece with what it is of the text."""
    found, spans = vocabulary.tokens(text)
    return [
        (piece, text[start:end])
        for piece, (start, end) in zip(found, spans, strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Zoë lives.", [("zoe", "Zoë"), ("live", "live"), ("##s", "s"), (".", ".")]),
        # An accent of its own, which the piece does without, stays with its letter.
        ("Zoe\u0308 lives", [("zoe", "Zoe\u0308"), ("live", "live"), ("##s", "s")]),
        ("PARIS,東", [("pa", "PA"), ("##ris", "RIS"), (",", ","), ("東", "東")]),
        ("a 😀 x", [("a", "a"), (UNKNOWN, "😀"), (UNKNOWN, "x")]),
        ("\u200b zoe\x00", [("zoe", "zoe")]),
        # No text can name a special piece.
        ("[PAD]", [(UNKNOWN, "["), (UNKNOWN, "PAD"), (UNKNOWN, "]")]),
        ("zo\ud800e", [("zoe", "zo\ud800e")]),
        ("", []),
    ],
)
def test_pieces_and_their_places(text, expected):
    assert split(text) == expected


def test_a_vocabulary_with_upper_case_tells_cases_apart():
    assert not LOWER.is_cased
    assert CASED.is_cased
    assert split("Zoe zoe", CASED) == [("Zoe", "Zoe"), ("zo", "zo"), ("##e", "e")]


@settings(max_examples=200)
@given(st.text())
@example("e\u0301\u0301 \ud800 ﬁ İ \ufffd")
def test_places_are_in_order_and_hold_what_they_stand_for(text):
    spans = LOWER.tokens(text)[1]
    assert all(0 <= start < end <= len(text) for start, end in spans)
    for (start, end), (following, last) in itertools.pairwise(spans):
        assert start <= following
        assert end <= last
    # Nothing but spaces, control characters, accents and what stands for a damaged
    # character is left out.
    left = set(range(len(text)))
    for start, end in spans:
        left -= set(range(start, end))
    for place in left:
        category = unicodedata.category(text[place])
        assert category[0] in "ZC" or category == "Mn" or text[place] == "\ufffd"


@settings(max_examples=200)
@given(st.text("zoelivs 東.\n\x1c", max_size=40))
def test_pieces_are_counted_in_parts_cut_at_white_space(text):
    count = len(LOWER.tokens(text)[0])
    assert LOWER.count(text) == count
    longest = max(map(len, re.split("[ \n]", text)))
    pattern = pieces.PARTS.pattern.replace("4096", str(longest + 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PARTS", re.compile(pattern))
        assert LOWER.count(text) == count
        assert (LOWER.count(text, 3) > 3) == (count > 3)


@settings(max_examples=200)
@given(st.text("zoelivs.東 \ufffd", max_size=40), st.integers(1, 9))
@example("s.zoelives", 5)
@example("\ufffd" * 9, 5)
def test_pieces_are_never_counted_too_low(text, longest):
    """A word that is cut in two may be two pieces, and five when it is split."""
    pattern = pieces.PARTS.pattern.replace("4096", str(longest))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PARTS", re.compile(pattern))
        found = LOWER.tokens(text)[0]
        assert LOWER.count(text) >= len(found)
        assert bool(LOWER.count(text, 0)) == bool(found)


def test_the_column_has_each_piece_s_number():
    table = LOWER.table(["", "zoe", UNKNOWN, "##s"])
    assert table.keys() == {"pieces"}
    assert table["pieces"].dtype == np.int32
    numbers = [LOWER.number_of[piece] for piece in ("zoe", UNKNOWN, "##s")]
    assert table["pieces"].tolist() == [0, *numbers]


TEXTS = ["the cat sat on the mat", "the cats sat", "a mat, a cat"] * 3


def test_a_vocabulary_is_made_of_texts():
    made = WordPieces.train(TEXTS, 40)
    assert made.pieces[: len(SPECIAL)] == list(SPECIAL)
    assert len(made.pieces) <= 40
    assert {"the", "cat", "mat"} < set(made.pieces)
    assert split("The cats", made) == [("the", "The"), ("cats", "cats")]
    assert WordPieces.train(TEXTS, 40).pieces == made.pieces


def test_no_more_pieces_are_made_than_asked_for():
    texts = ["".join(map(chr, range(0x4E00 + i, 0x4F00 + i))) for i in range(0, 999, 9)]
    made = WordPieces.train(texts, 100)
    assert len(made) <= 100
    assert made.pieces == WordPieces.train(texts, 100).pieces


def test_what_is_stored_comes_back(tmp_path):
    LOWER.save(tmp_path)
    assert WordPieces.load(tmp_path).pieces == LOWER.pieces
    assert WordPieces.from_fields(LOWER.to_fields(), None).pieces == LOWER.pieces
    assert WordPieces.load(tmp_path).key == LOWER.key != CASED.key


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[PAD]\n[UNK]\n", r"vocab\.txt: not a vocabulary: it has no piece \[CLS\]"),
        ("\n".join([*SPECIAL, "a", "a"]), "must differ"),
        ("\n".join(["a", *SPECIAL]), r"first piece must be \[PAD\]"),
    ],
)
def test_a_file_that_is_no_vocabulary(tmp_path, text, message):
    (tmp_path / "vocab.txt").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        WordPieces.load(tmp_path)


def test_a_missing_or_unreadable_file(tmp_path):
    with pytest.raises(UserError, match=r"vocab\.txt: cannot be read"):
        WordPieces.load(tmp_path)
    (tmp_path / "vocab.txt").write_bytes(b"\xff\n")
    with pytest.raises(UserError, match="is not UTF-8"):
        WordPieces.load(tmp_path)


@pytest.mark.parametrize(
    "fields",
    [{}, [], {"pieces": [1]}, {"pieces": "abc"}, {"pieces": [*SPECIAL, "\ud800"]}],
)
def test_fields_of_something_else(fields):
    with pytest.raises(ValueError, match="piece"):
        WordPieces.from_fields(fields, None)


def test_each_letter_of_the_texts_has_a_piece():
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    made = WordPieces.train([" ".join(alphabet)], 100)
    assert set(alphabet) < set(made.pieces)
    assert {f"##{letter}" for letter in alphabet} < set(made.pieces)


def test_accents_that_have_pieces_stand_for_themselves():
    cased = WordPieces([*SPECIAL, "Zoe", "##\u0308"])
    assert split("Zoe\u0308", cased) == [("Zoe", "Zoe"), ("##\u0308", "\u0308")]


def test_a_token_of_another_vocabulary_is_unknown():
    assert LOWER.table(["", "zzz"])["pieces"].tolist() == [0, LOWER.number_of[UNKNOWN]]


def test_a_file_with_windows_line_ends(tmp_path):
    text = "\r\n".join([*SPECIAL, "zoe", ""])
    (tmp_path / "vocab.txt").write_bytes(text.encode())
    assert WordPieces.load(tmp_path).pieces == [*SPECIAL, "zoe"]


def test_pieces_of_white_space_keep_their_numbers(tmp_path):
    # As line 344 of bert-base-chinese.
    (tmp_path / "vocab.txt").write_bytes(
        "\n".join([*SPECIAL, "\u2028", "a\n"]).encode()
    )
    assert WordPieces.load(tmp_path).pieces == [*SPECIAL, "\u2028", "a"]


def test_marks_have_no_case():
    assert not WordPieces([*SPECIAL, "<S>", "<T>", "zoe"]).is_cased
    assert WordPieces([*SPECIAL, "<S>", "Zoe"]).is_cased


def test_words_of_more_than_a_hundred_letters_are_unknown():
    vocabulary = WordPieces([*SPECIAL, "a", "##a"])
    assert vocabulary.tokens("a" * 100)[0] == ["a"] + ["##a"] * 99
    assert vocabulary.tokens("a" * 101)[0] == [UNKNOWN]


def test_half_a_surrogate_pair_does_not_keep_a_vocabulary_from_being_made():
    assert "cat" in WordPieces.train(["the \ud800 cat"] * 3, 40).pieces


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UserError, match="pip install tokenizers"):
        WordPieces([*SPECIAL]).tokens("a")
