import gzip
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qanet.errors import UserError
from qanet.text import vectors as vectors_module
from qanet.text.vectors import (
    WordVectors,
    join_vectors,
    load_vectors,
    read_vectors,
)

GLOVE = "the 0.5 -1 2e-1\nParis 1 2 3\nparis 4 5 6\n, 7 8 9\n"
ON_A_FIXTURE = [HealthCheck.function_scoped_fixture]


def write(directory, content, name="vectors.txt"):
    path = directory / name
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def rows(vectors):
    return dict(zip(vectors.words, vectors.table[2:].tolist(), strict=True))


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz"])
def test_reads_the_words_wanted(tmp_path, name):
    vectors = read_vectors(write(tmp_path, GLOVE, name), {"the", "Paris", "unheard"})
    assert vectors.words == ["the", "Paris", "paris"]
    assert vectors.table.dtype == np.float32
    expected = [[0, 0, 0], [0, 0, 0], [0.5, -1, 0.2], [1, 2, 3], [4, 5, 6]]
    np.testing.assert_array_equal(vectors.table, np.float32(expected))


def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path):
    for content in (GLOVE, "2 1\na 1\nb 2\n"):
        plain = read_vectors(write(tmp_path, content), [], extra=2)
        marked = read_vectors(write(tmp_path, f"\ufeff{content}"), [], extra=2)
        assert rows(marked) == rows(plain)


def test_keeps_the_lower_case_of_a_word_but_not_its_capitals(tmp_path):
    path = write(tmp_path, GLOVE)
    assert read_vectors(path, ["PARIS"]).words == ["paris"]
    assert read_vectors(path, ["paris"]).words == ["paris"]


def test_keeps_extra_rows_from_the_top(tmp_path):
    path = write(tmp_path, GLOVE)
    assert read_vectors(path, [","], extra=2).words == ["the", "Paris", ","]
    assert read_vectors(path, [], extra=99).words == ["the", "Paris", "paris", ","]


def test_none_of_the_words_is_in_the_file(tmp_path):
    vectors = read_vectors(write(tmp_path, GLOVE), ["unheard"])
    assert vectors.words == []
    assert vectors.table.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_an_empty_last_line(tmp_path):
    path = write(tmp_path, "a 1 2\nb 3 4\n\n")
    assert rows(read_vectors(path, ["a", "b"])) == {"a": [1, 2], "b": [3, 4]}


def test_header_is_not_a_word(tmp_path):
    path = write(tmp_path, "2 3\n</s> 1 2 3 \nthe 4 5 6 \n")  # as fastText writes it
    assert rows(read_vectors(path, [], extra=1)) == {"</s>": [1, 2, 3]}
    assert rows(read_vectors(path, ["2", "the"])) == {"the": [4, 5, 6]}


def test_fewer_vectors_than_the_header_tells_of_are_told(tmp_path, caplog):
    read_vectors(write(tmp_path, "2 1\na 1\nb 2\n"), ["a"])
    assert not caplog.messages
    read_vectors(write(tmp_path, "1000 1\na 1\nb 2\n"), ["a"])
    (message,) = caplog.messages
    assert "holds 2 of the 1,000 vectors" in message


def test_first_of_equal_words_wins(tmp_path):
    path = write(tmp_path, "a 1 2\nb 3 4\na 5 6\n")
    assert rows(read_vectors(path, ["a"])) == {"a": [1, 2]}


def test_words_with_blanks(tmp_path):
    path = write(
        tmp_path, ", 0 0\n. . . 1 2\nat name@domain.com 3 4\nto infinity 5 6\n"
    )
    wanted = [". . .", "to infinity", "at"]
    assert rows(read_vectors(path, wanted)) == {". . .": [1, 2], "to infinity": [5, 6]}


def vectors_of(**rows_of_words):
    width = len(next(iter(rows_of_words.values())))
    table = [[0] * width] * 2 + list(rows_of_words.values())
    return WordVectors(list(rows_of_words), np.float32(table))


def test_joined_vectors_stand_side_by_side():
    cased = vectors_of(Paris=[1, 2], paris=[3, 4], Oslo=[5, 6])
    uncased = vectors_of(paris=[7], rome=[8])

    joined = join_vectors([cased, uncased])

    assert rows(joined) == {
        "Paris": [1, 2, 7],  # by its lower case
        "paris": [3, 4, 7],
        "Oslo": [5, 6, 0],
        "rome": [0, 0, 8],
    }
    assert joined.words == ["Paris", "paris", "Oslo", "rome"]
    assert joined.table.dtype == np.float32
    assert not joined.table[:2].any()


def test_one_file_joined_is_itself():
    vectors = vectors_of(b=[1, 2], a=[3, 4])
    joined = join_vectors([vectors])
    assert joined.words == vectors.words
    np.testing.assert_array_equal(joined.table, vectors.table)


@pytest.mark.parametrize("word", ["\x85", "\u00a0", "a\u2028b", "a\rb", "a\tb"])
def test_only_line_feeds_end_lines_and_only_blanks_end_words(tmp_path, word):
    path = write(tmp_path, f"the 1 2\n{word} 3 4\n")
    assert rows(read_vectors(path, [word])) == {word: [3, 4]}


def test_windows_line_ends_and_no_line_end_at_the_end(tmp_path):
    path = write(tmp_path, "a 1 2\r\nb 3 4")
    assert rows(read_vectors(path, "ab")) == {"a": [1, 2], "b": [3, 4]}


WORDS = st.text(st.characters(codec="utf-8", exclude_characters=" \r\n"), min_size=1)
NUMBERS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@settings(suppress_health_check=ON_A_FIXTURE)
@given(
    table=st.integers(2, 4).flatmap(
        lambda dimension: st.dictionaries(
            WORDS,
            st.lists(NUMBERS, min_size=dimension, max_size=dimension),
            min_size=1,
        )
    ),
    header=st.booleans(),
    gzipped=st.booleans(),
)
def test_reads_back_what_was_written(tmp_path, table, header, gzipped):
    dimension = len(next(iter(table.values())))
    lines = [f"{len(table)} {dimension}"] if header else []
    lines += [" ".join([word, *map(repr, row)]) for word, row in table.items()]
    path = write(tmp_path, "\n".join(lines), "v.gz" if gzipped else "v.txt")
    vectors = read_vectors(path, table)
    assert rows(vectors) == table
    assert vectors.words == list(table)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no vectors"),
        ("2 3\n", "holds no vectors"),
        ("\n", "holds no vectors"),
        ("\na 1 2\n", "line 1: not a word and its numbers"),
        ("word\n", "line 1: not a word and its numbers"),
        ("a\t1\t2\n", "line 1: not a word and its numbers"),
        ("3 0\na\n", "line 1: not a word and its numbers"),
        ("a 1 2\nb 3\n", "line 2: 1 numbers after the word instead of 2"),
        ("a 1 2\n\nb 3 4\n", "line 2: 0 numbers after the word instead of 2"),
        ("a 1 2\nb 3 4 5\n", "line 2: 3 numbers after the word instead of 2"),
        ("1 3\na 1 2\n", "line 2: 2 numbers after the word instead of 3"),
        ("1 999999999\na 1 2\n", "line 2: 2 numbers after the word instead of 999999"),
        (f"1 {'9' * 30}\na 1 2\n", "line 2: 2 numbers after the word instead of 1"),
        ("1 2\na 1 2 3\n", "line 2: 3 numbers after the word instead of 2"),
        ("a 1 2\nb 3 four\n", "line 2: could not convert"),
        ("a 1 2\nb  3\n", "line 2: could not convert"),
        ("a 1 2\nb 3 nan\n", "line 2: a number is not finite"),
        ("a 1 2\nb -inf 4\n", "line 2: a number is not finite"),
        ("a 1 2\nb 3 1e39\n", "line 2: a number is not finite"),  # beyond float32
        (b"a 1 2\n\xff 3 4\n", "line 2: not UTF-8 text"),
    ],
)
def test_malformed_file(tmp_path, content, message):
    path = write(tmp_path, content)
    with pytest.raises(UserError) as caught:
        read_vectors(path, "ab")
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("line", ["skipped 1", "skipped 1 2 3", "skipped"])
def test_columns_are_counted_in_rows_not_kept(tmp_path, line):
    with pytest.raises(UserError, match=r"line 2: .* instead of 2"):
        read_vectors(write(tmp_path, f"a 1 2\n{line}\n"), "a")


@pytest.mark.parametrize("name", ["absent.txt", "absent.txt.gz"])
def test_missing_file(tmp_path, name):
    with pytest.raises(UserError, match=rf"{name}: cannot be read: No such file"):
        read_vectors(tmp_path / name, ["a"])


def test_directory_instead_of_a_file(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        read_vectors(tmp_path, ["a"])


def test_gz_that_is_not_gzip(tmp_path):
    path = tmp_path / "vectors.gz"
    path.write_text(GLOVE)
    with pytest.raises(UserError, match="not a whole gzip file; get it again"):
        read_vectors(path, ["the"])


def test_every_truncation_of_a_gzip_file_is_noticed(tmp_path):
    path = write(tmp_path, GLOVE, "vectors.gz")
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(UserError):
            read_vectors(path, ["the"])


def test_words_and_table_must_fit():
    with pytest.raises(ValueError, match="1 words do not fit"):
        WordVectors(["a"], np.zeros((2, 5), np.float32))


class TestCache:
    @pytest.fixture
    def path(self, tmp_path):
        return write(tmp_path, GLOVE)

    @pytest.fixture
    def cache(self, tmp_path):
        return tmp_path / "deep" / "cache"

    @pytest.fixture
    def reads(self, monkeypatch):
        """The paths that were really read, not taken from the cache."""
        paths = []

        def read(path, words, extra):
            paths.append(path)
            return read_vectors(path, words, extra)

        monkeypatch.setattr(vectors_module, "read_vectors", read)
        return paths

    def test_second_time_comes_from_the_cache(self, path, cache, reads):
        first = load_vectors(path, ["the", "Paris"], 1, cache)
        second = load_vectors(path, ["Paris", "the"], 1, cache)
        assert reads == [path]
        assert first.words == second.words == ["the", "Paris", "paris"]
        np.testing.assert_array_equal(first.table, second.table)
        assert second.table.dtype == np.float32

    def test_nothing_kept_is_cached_too(self, path, cache, reads):
        for _ in range(2):
            assert load_vectors(path, [], 0, cache).words == []
        assert len(reads) == 1

    def test_another_request_is_read_anew(self, path, cache):
        assert load_vectors(path, ["the"], 0, cache).words == ["the"]
        assert load_vectors(path, [","], 0, cache).words == [","]
        assert load_vectors(path, [","], 1, cache).words == ["the", ","]

    def test_changed_content_is_read_anew(self, path, cache):
        load_vectors(path, ["the"], 0, cache)
        before = path.stat()
        path.write_text(GLOVE.replace("0.5", "0.7"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_size == before.st_size
        vectors = load_vectors(path, ["the"], 0, cache)
        assert math.isclose(vectors.table[2, 0], 0.7, rel_tol=1e-6)

    def test_changed_time_is_read_anew(self, path, cache, reads):
        load_vectors(path, ["the"], 0, cache)
        os.utime(path, ns=(0, 0))
        load_vectors(path, ["the"], 0, cache)
        assert len(reads) == 2

    def test_any_damaged_byte_is_harmless(self, path, cache):
        good = load_vectors(path, ["the"], 0, cache)
        (file,) = cache.iterdir()
        whole = file.read_bytes()
        for i in range(len(whole)):
            file.write_bytes(whole[:i] + bytes([whole[i] ^ 0xFF]) + whole[i + 1 :])
            vectors = load_vectors(path, ["the"], 0, cache)
            assert vectors.words == good.words
            np.testing.assert_array_equal(vectors.table, good.table)

    @pytest.mark.parametrize("content", [b"", b"PK", b"\x93NUMPY", b"not an archive"])
    def test_damaged_file_is_rebuilt(self, path, cache, reads, content):
        load_vectors(path, ["the"], 0, cache)
        (file,) = cache.iterdir()
        whole_size = file.stat().st_size
        file.write_bytes(content)
        assert load_vectors(path, ["the"], 0, cache).words == ["the"]
        assert file.stat().st_size == whole_size
        assert len(reads) == 2

    def test_leaves_only_the_cache_file(self, path, cache):
        load_vectors(path, ["the"], 0, cache)
        assert [file.suffix for file in cache.iterdir()] == [".npz"]

    def test_lone_surrogate_among_the_words(self, path, cache):
        assert load_vectors(path, ["\ud800", "the"], 0, cache).words == ["the"]

    def test_missing_vectors(self, cache):
        with pytest.raises(UserError, match=r"absent\.txt: cannot be read"):
            load_vectors(Path("absent.txt"), ["the"], 0, cache)

    def test_cache_that_cannot_be_written_is_done_without(self, path, caplog):
        vectors = load_vectors(path, ["the"], 0, path)
        assert vectors.words == ["the"]
        (record,) = caplog.records
        assert record.levelname == "WARNING"
        assert f"{path}/" in record.message
        assert "cannot be written" in record.message


def test_a_word_with_blanks_behind_a_header(tmp_path):
    path = write(tmp_path, "2 2\n. . 1 2\nb 3 4\n")
    assert rows(read_vectors(path, [". .", "b"])) == {". .": [1, 2], "b": [3, 4]}


@pytest.mark.parametrize(("old", "new"), [("the 0.5", "the 0.7"), ("7 8 9", "7 8 5")])
def test_changed_content_of_a_large_file_is_read_anew(tmp_path, monkeypatch, old, new):
    """Its head and its tail are looked at."""
    monkeypatch.setattr(vectors_module, "_MEBIBYTE", 8)
    path = write(tmp_path, GLOVE)
    first = load_vectors(path, ["the", ","], 0, tmp_path / "cache")
    before = path.stat()
    path.write_text(GLOVE.replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    second = load_vectors(path, ["the", ","], 0, tmp_path / "cache")
    assert (first.table != second.table).sum() == 1
