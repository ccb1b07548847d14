"""Tests of qanet.text.folded."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from qanet.errors import UserError
from qanet.text import folded
from qanet.text.folded import FoldedTable, FoldedVocabulary
from qanet.text.vocabulary import RESERVED, Vocabulary

VOCABULARY = Vocabulary([*RESERVED, "a", "b"], [*RESERVED, "a", "b"], 3)
TABLES = arrays.arrays(
    "float32",
    st.tuples(st.integers(1, 5), st.sampled_from([2, 4])),
    elements=st.floats(-1e6, 1e6, width=32),
)


@given(TABLES, st.sampled_from([(8, 127), (4, 7)]))
def test_integers_are_as_near_as_they_can_be(table, bits_and_most):
    bits, most = bits_and_most
    folded = FoldedTable.of(table, bits)
    assert folded.rows.nbytes == table.size * bits // 8
    found = folded.look_up(np.arange(len(table)))
    assert found.dtype == np.float32
    table = table.clip(-65504, 65504)
    step = np.abs(table).max(axis=1, keepdims=True) / most
    # Scales are rounded themselves, to 11 bits, and tiny ones to fewer.
    assert (np.abs(found - table) <= 0.6 * step + 1e-5).all()


@given(TABLES)
def test_half_precision(table):
    found = FoldedTable.of(table, 16).look_up(np.arange(len(table)))
    expected = table.clip(-65504, 65504).astype(np.float16)
    np.testing.assert_array_equal(found, expected.astype(np.float32))


def test_parts_of_a_row_have_scales_of_their_own():
    table = np.ones((1, 2 * folded.GROUP), np.float32)
    table[:, folded.GROUP :] = 1000.0
    found = FoldedTable.of(table, 4).look_up(np.array([0]))
    np.testing.assert_allclose(found, table, rtol=1e-3)


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_a_stored_table_is_mapped_into_memory(bits, rng, tmp_path):
    table = FoldedTable.of(rng.normal(size=(4, 2)).astype("float32"), bits)
    table.save(tmp_path)

    again = FoldedTable.load(tmp_path, 4)

    assert isinstance(again.rows, np.memmap)
    rows = np.array([3, 0, 3])
    np.testing.assert_array_equal(again.look_up(rows), table.look_up(rows))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (folded.TABLE_FILE, None, "cannot be read"),
        (folded.TABLE_FILE, b"no array", "damaged"),
        (folded.TABLE_FILE, np.zeros((3, 3), np.int8), "one row for each word"),
        (folded.TABLE_FILE, np.zeros(4, np.int8), "one row for each word"),
        (folded.TABLE_FILE, np.zeros((4, 3), np.int32), "not a table of words"),
        (folded.TABLE_FILE, np.zeros((4, 3), np.float32), "not a table of words"),
        (folded.SCALES_FILE, np.zeros((4, 0), np.float16), "not a table of words"),
        (folded.TABLE_FILE, np.array([["a"]] * 4, object), "damaged"),
        (folded.SCALES_FILE, None, "cannot be read"),
        (folded.SCALES_FILE, np.zeros((4, 2), np.float16), "not a table of words"),
        (folded.SCALES_FILE, np.zeros((4, 1), np.float32), "not a table of words"),
    ],
    ids=str,
)
def test_a_damaged_table_is_a_users_mistake(name, content, reason, tmp_path):
    FoldedTable.of(np.ones((4, 3)), 8).save(tmp_path)
    path = tmp_path / name
    if content is None:
        path.unlink()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content, allow_pickle=True)
    with pytest.raises(UserError, match=reason) as error:
        FoldedTable.load(tmp_path, 4)
    assert str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)


class Asked:
    """The word side of an encoder, and the words that it was asked for."""

    def __init__(self):
        self.rows = []

    def __call__(self, columns):
        self.rows.append(columns["words"].tolist())
        return {
            "vectors": columns["folded"] + columns["characters"][:, :1],
            "spellings": columns["characters"],
        }


@pytest.fixture
def asked():
    return Asked()


@pytest.fixture
def encoder(asked):
    table = FoldedTable(np.arange(8, dtype=np.float16).reshape(4, 2))
    return FoldedVocabulary(VOCABULARY, table, asked, {"words", "vectors"})


def test_columns_are_made_of_rows_a_few_words_at_a_time(monkeypatch, asked, encoder):
    monkeypatch.setattr(folded, "CHUNK", 2)

    columns = encoder.table(["", "b", "ab", "a", "B"])

    assert asked.rows == [[0, 3], [1, 2], [3]]
    assert columns.keys() == {"words", "vectors"}
    assert columns["words"].tolist() == [0, 3, 1, 2, 3]
    assert columns["vectors"][1:].tolist() == [[9, 10], [4, 5], [6, 7], [7, 8]]
    assert len(encoder) == 4
    assert encoder.tokens("a b") == VOCABULARY.tokens("a b")


def test_columns_of_words_are_made_once(asked, encoder):
    first = encoder.table(["", "b", "a"])
    again = encoder.table(["", "a", "ab", "b"])
    padding = encoder.table([""])

    assert asked.rows == [[0, 3, 2], [0, 1]]
    assert again["words"].tolist() == [0, 2, 1, 3]
    for name, column in again.items():
        np.testing.assert_array_equal(column[[0, 3, 1]], first[name])
        np.testing.assert_array_equal(column[:1], padding[name])
        assert column.dtype == first[name].dtype


WORDS = st.text("ab", min_size=1, max_size=4)


@given(st.lists(st.lists(WORDS, unique=True), max_size=20))
def test_what_is_kept_changes_no_columns_and_stays_small(texts):
    asked = Asked()
    table = FoldedTable(np.arange(8, dtype=np.float16).reshape(4, 2))
    encoder = FoldedVocabulary(VOCABULARY, table, asked, {"words", "vectors"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folded, "MOST_KEPT", 5)
        patch.setattr(folded, "LONGEST_KEPT", 3)
        for text in texts:
            words = ["", *text]
            expected = encoder.columns_of(VOCABULARY.table(words))
            columns = encoder.table(words)
            assert columns.keys() == expected.keys()
            for name, column in columns.items():
                np.testing.assert_array_equal(column, expected[name])
            # And padding.
            assert len(encoder._kept) <= 6
            assert all(len(word) <= 3 for word in encoder._kept)


def test_one_encoder_serves_several_threads(encoder, monkeypatch):
    monkeypatch.setattr(folded, "MOST_KEPT", 20)
    spellings = ["".join(letters) for letters in itertools.product("ab", repeat=4)]

    def read(seed):
        rng = np.random.default_rng(seed)
        for _ in range(100):
            words = ["", *rng.choice(spellings, 8, replace=False)]
            expected = encoder.columns_of(VOCABULARY.table(words))
            columns = encoder.table(words)
            for name in expected:
                np.testing.assert_array_equal(columns[name], expected[name])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(read, range(4)))


def test_what_is_made_of_infinite_scales_is_no_warning():
    table = FoldedTable(np.zeros((1, 2), np.int8), np.full((1, 1), np.inf, np.float16))
    assert np.isnan(table.look_up(np.array([0]))).all()


def test_a_table_of_more_words_is_refused(tmp_path):
    FoldedTable.of(np.ones((5, 3)), 8).save(tmp_path)
    with pytest.raises(UserError, match="one row for each word"):
        FoldedTable.load(tmp_path, 4)
