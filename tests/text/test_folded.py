"""Tests of qanet.text.folded."""

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


def test_columns_are_made_of_rows_a_few_words_at_a_time(monkeypatch):
    monkeypatch.setattr(folded, "CHUNK", 2)
    sizes = []

    def word_side(columns):
        sizes.append(len(columns["words"]))
        return {
            "vectors": columns["folded"] + columns["characters"][:, :1],
            "spellings": columns["characters"],
        }

    table = FoldedTable(np.arange(8, dtype=np.float16).reshape(4, 2))
    encoder = FoldedVocabulary(VOCABULARY, table, word_side, {"words", "vectors"})

    columns = encoder.table(["", "b", "ab", "a", "b"])

    assert sizes == [2, 2, 1]
    assert columns.keys() == {"words", "vectors"}
    assert columns["words"].tolist() == [0, 3, 1, 2, 3]
    assert columns["vectors"][1:].tolist() == [[9, 10], [4, 5], [6, 7], [9, 10]]
    assert len(encoder) == 4
    assert encoder.tokens("a b") == VOCABULARY.tokens("a b")
