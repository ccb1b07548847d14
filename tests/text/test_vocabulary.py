"""Tests of qanet.text.vocabulary."""

import contextlib
import itertools
import json
from collections import Counter
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qanet.errors import UserError
from qanet.text.config import VocabularyConfig
from qanet.text.vectors import WordVectors
from qanet.text.vocabulary import (
    COMPOSED_CHARACTERS,
    CONTEXTUAL_DIRECTORY,
    RESERVED,
    UNKNOWN,
    VECTORS_FILE,
    WORDS_FILE,
    Vocabulary,
    plain,
)

# Lone surrogates too. The tokenizer cannot give "<unknown>": its "<" stands alone.
WORDS = st.text(st.characters(), min_size=1).filter(lambda word: word != "<unknown>")
COUNTS = Counter({"the": 5, "The": 2, "Zoë": 2, "cat": 1})


def settings_with(**values):
    limits = {"word_min_count": 1, "character_min_count": 1, "characters_per_word": 4}
    return VocabularyConfig(**{**limits, **values})


def pretrained(*words):
    table = np.arange(2 * (len(words) + 2), dtype=np.float32).reshape(-1, 2)
    table[:2] = 0
    return WordVectors(list(words), table)


@pytest.fixture
def learned():
    """A vocabulary without pretrained vectors."""
    return Vocabulary.build(COUNTS, None, settings_with())


@pytest.fixture
def given_vectors():
    return Vocabulary.build(COUNTS, pretrained("cat", "the", "dog"), settings_with())


def test_words_come_most_frequent_first_then_by_code_points(learned):
    assert learned.words == ["", "<unknown>", "the", "The", "Zoë", "cat"]
    assert learned.vectors is None


def test_rare_words_get_no_row_of_their_own():
    vocabulary = Vocabulary.build(COUNTS, None, settings_with(word_min_count=2))
    assert vocabulary.words == ["", "<unknown>", "the", "The", "Zoë"]


def test_characters_are_counted_once_per_occurrence_of_their_word(learned):
    # e 7, h 7, t 6, T 2, Z 2, o 2, ë 2, a 1, c 1
    assert learned.characters == ["", "<unknown>", *"ehtTZoëac"]


@pytest.mark.parametrize(
    ("least", "characters"), [(2, "ehtTZoë"), (3, "eht"), (7, "eh"), (8, "")]
)
def test_rare_characters_get_no_number(least, characters):
    config = settings_with(character_min_count=least)
    vocabulary = Vocabulary.build(COUNTS, None, config)
    assert vocabulary.characters == ["", "<unknown>", *characters]


def test_pretrained_words_are_the_words_in_their_order(given_vectors):
    assert given_vectors.words == ["", "<unknown>", "cat", "the", "dog"]
    assert given_vectors.vectors.dtype == np.float16
    expected = [[0, 0], [0, 0], [4, 5], [6, 7], [8, 9]]
    assert given_vectors.vectors.tolist() == expected


def test_vectors_beyond_half_precision_stay_finite():
    table = np.zeros((3, 2), dtype=np.float32)
    table[2] = 1e6, -1e6
    vectors = Vocabulary.build(COUNTS, WordVectors(["a"], table), settings_with())
    assert vectors.vectors[2].tolist() == [65504, -65504]


def test_pretrained_vectors_keep_rare_words_and_leave_out_new_ones():
    config = settings_with(word_min_count=9)
    vocabulary = Vocabulary.build(COUNTS, pretrained("cat"), config)
    assert [vocabulary.row(word) for word in ("cat", "Cat", "the")] == [2, 2, 1]


@pytest.mark.parametrize(
    ("word", "row"),
    [
        ("the", 2),
        ("The", 3),  # the exact form before the lower case
        ("THE", 2),  # else the lower case
        ("CAT", 5),
        ("zoë", 1),  # a capital is never guessed
        ("dog", 1),
        ("", 1),  # no text can name padding ...
        ("<unknown>", 1),  # ... or the unknown word
    ],
)
def test_row(learned, word, row):
    assert learned.row(word) == row


def test_characters_in_parts_and_soft_hyphens_make_no_other_word():
    counts = Counter({"Zoe\u0308": 1, "Zoë": 1, "mu\u00adseum": 2})
    config = VocabularyConfig(word_min_count=2, character_min_count=1)
    made = Vocabulary.build(counts, None, config)
    assert made.words == [*RESERVED, "Zoë", "museum"]
    for forms in (["Zoë", "Zoe\u0308"], ["museum", "mu\u00adse\u00adum"]):
        assert len({made.row(form) for form in forms} - {UNKNOWN}) == 1
        assert len({tuple(made.spell(form)) for form in forms}) == 1
    assert made.row("\u00ad") == UNKNOWN
    alone = Vocabulary.build(Counter({"\u00ad": 2}), None, config)
    assert alone.words == [*RESERVED, "\u00ad"]
    # A file of vectors may have it as it stands.
    other = Vocabulary([*RESERVED, "Zoe\u0308", "zoë", "noe\u0308l"], [*RESERVED], 4)
    assert other.row("Zoe\u0308") == 2
    assert other.row("Zoë") == 3
    assert other.row("NOE\u0308L") == 4


def test_a_word_with_very_many_accents_stays_as_it_is():
    # To compose it would take a time that grows as the square of their number.
    accents = "e" + "\u0301" * COMPOSED_CHARACTERS
    assert plain(accents) == accents
    assert plain(accents[:-1]) == "é" + accents[2:-1]


def test_spell(learned):
    assert learned.spell("the") == [4, 3, 2]
    assert learned.spell("theatre") == [4, 3, 2, 9]  # cut to four
    assert learned.spell("t!é") == [4, 1, 1]
    assert learned.spell("") == []


def test_table(given_vectors):
    table = given_vectors.table(["", "The", "unheard", "Zoë"])
    assert {column.dtype for column in table.values()} == {np.dtype("int32")}
    assert table["words"].tolist() == [0, 3, 1, 1]
    expected = [[0, 0, 0, 0], [5, 3, 2, 0], [1, 1, 3, 2], [6, 7, 8, 0]]
    assert table["characters"].tolist() == expected


def assert_equal(one, other):
    assert one.words == other.words
    assert one.characters == other.characters
    assert one.characters_per_word == other.characters_per_word
    np.testing.assert_array_equal(one.vectors, other.vectors)


@pytest.mark.parametrize("name", ["learned", "given_vectors"])
def test_loads_what_was_saved(request, tmp_path, name):
    vocabulary = request.getfixturevalue(name)
    vocabulary.save(tmp_path / "new" / "vocabulary")
    assert_equal(Vocabulary.load(tmp_path / "new" / "vocabulary"), vocabulary)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(WORDS, st.integers(1, 9)))
def test_any_word_survives_the_file(tmp_path, counts):
    vocabulary = Vocabulary.build(Counter(counts), None, settings_with())
    vocabulary.save(tmp_path)
    assert_equal(Vocabulary.load(tmp_path), vocabulary)


@pytest.mark.parametrize("word", ["", "<unknown>"])
def test_a_vectors_file_may_hold_a_reserved_word(tmp_path, word):
    vocabulary = Vocabulary.build(COUNTS, pretrained("the", word), settings_with())
    vocabulary.save(tmp_path)
    assert_equal(Vocabulary.load(tmp_path), vocabulary)
    assert vocabulary.row(word) == 3  # its own vector, not what is reserved


def test_saving_again_replaces_and_leaves_nothing_else(
    tmp_path, learned, given_vectors
):
    learned.save(tmp_path)
    given_vectors.save(tmp_path)
    assert_equal(Vocabulary.load(tmp_path), given_vectors)
    assert {file.name for file in tmp_path.iterdir()} == {WORDS_FILE, VECTORS_FILE}


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch, learned):
    learned.save(tmp_path)

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(UserError, match="no space left"):
        Vocabulary.build(Counter("x"), None, settings_with()).save(tmp_path)
    assert_equal(Vocabulary.load(tmp_path), learned)
    assert [file.name for file in tmp_path.iterdir()] == [WORDS_FILE]


def test_missing_file(tmp_path):
    with pytest.raises(UserError, match=rf"{WORDS_FILE}: cannot be read"):
        Vocabulary.load(tmp_path)


def test_missing_vectors(tmp_path, given_vectors):
    given_vectors.save(tmp_path)
    (tmp_path / VECTORS_FILE).unlink()
    with pytest.raises(UserError, match=rf"{VECTORS_FILE}: cannot be read"):
        Vocabulary.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_not_a_vocabulary(tmp_path, content):
    (tmp_path / WORDS_FILE).write_bytes(content)
    with pytest.raises(UserError, match=rf"{WORDS_FILE}: not a vocabulary"):
        Vocabulary.load(tmp_path)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("words", None, "words must be of type list"),
        ("words", ["the"], "words must begin with"),
        ("words", ["", "<unknown>", 7], "words must hold strings only"),
        ("words", ["", "<unknown>", "a", "a"], "words must differ"),
        ("characters", "abc", "characters must be of type list"),
        ("characters", [], "characters must begin with"),
        ("characters", ["", "<unknown>", "a", "a"], "characters must differ"),
        ("characters_per_word", True, "characters_per_word must be of type int"),
        ("characters_per_word", 0, "characters_per_word must be from 1 to 10,000"),
        ("characters_per_word", 10**9, "characters_per_word must be from 1 to 10,000"),
        ("pretrained", 0, "pretrained must be of type bool"),
        ("colour", "red", "nothing else"),
    ],
)
def test_malformed_field(tmp_path, learned, field, value, message):
    learned.save(tmp_path)
    path = tmp_path / WORDS_FILE
    fields = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**fields, field: value}), "utf-8")
    with pytest.raises(UserError, match=message):
        Vocabulary.load(tmp_path)


@pytest.mark.parametrize(
    "table",
    [
        np.zeros((4, 2), np.float16),
        np.zeros((6, 2), np.float16),
        np.zeros(5, np.float16),
        np.zeros((5, 2, 1), np.float16),
        np.zeros((5, 2), np.float32),
        np.array([["a", "b"]] * 5),
        np.array([None] * 5, dtype=object),
    ],
)
def test_vectors_that_do_not_fit(tmp_path, given_vectors, table):
    given_vectors.save(tmp_path)
    np.save(tmp_path / VECTORS_FILE, table)
    with pytest.raises(UserError, match=rf"{VECTORS_FILE}: not a vocabulary"):
        Vocabulary.load(tmp_path)


def test_vectors_that_memory_has_no_room_for_are_not_called_damaged(
    tmp_path, given_vectors, monkeypatch
):
    given_vectors.save(tmp_path)
    monkeypatch.setattr(np.lib.format, "read_array", mock.Mock(side_effect=MemoryError))
    with pytest.raises(MemoryError):
        Vocabulary.load(tmp_path)


def test_every_truncation_of_the_vectors_is_noticed(tmp_path, given_vectors):
    given_vectors.save(tmp_path)
    path = tmp_path / VECTORS_FILE
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(UserError):
            Vocabulary.load(tmp_path)


def test_damage_to_the_vectors_is_a_user_error(tmp_path, given_vectors):
    given_vectors.save(tmp_path)
    path = tmp_path / VECTORS_FILE
    whole = path.read_bytes()
    header = whole.index(b"\n") + 1
    for place, damage in itertools.product(range(header), (0x01, 0x08, 0x80)):
        damaged = bytearray(whole)
        damaged[place] ^= damage
        path.write_bytes(damaged)
        # Some damage, as to the blanks, changes nothing.
        with contextlib.suppress(UserError):
            loaded = Vocabulary.load(tmp_path)
            assert loaded.vectors.shape == given_vectors.vectors.shape


def test_an_archive_in_place_of_the_vectors(tmp_path, given_vectors):
    given_vectors.save(tmp_path)
    with (tmp_path / VECTORS_FILE).open("wb") as file:
        np.savez(file, np.zeros((5, 2), np.float16))
    with pytest.raises(UserError, match=VECTORS_FILE):
        Vocabulary.load(tmp_path)


def test_lower_case_of_characters():
    vocabulary = Vocabulary([*RESERVED], [*RESERVED, "a", "A", "Z", "é"], 4)
    # There is no "z".
    assert vocabulary.lowercase == (0, 1, 2, 2, 4, 5)


def test_words_alone_are_loaded_without_the_vectors(tmp_path, given_vectors):
    given_vectors.save_words(tmp_path)
    loaded = Vocabulary.load_words(tmp_path)
    assert loaded.words == given_vectors.words
    assert loaded.vectors is None


def test_the_language_model_is_saved_beside_the_words(tmp_path):
    class Model:
        def save(self, directory):
            directory.mkdir()

    Vocabulary([*RESERVED], [*RESERVED], 4, contextual=Model()).save(tmp_path)
    assert (tmp_path / CONTEXTUAL_DIRECTORY).is_dir()
