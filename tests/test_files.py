"""Tests of qanet.files."""

import csv
import errno
import gzip
import os
import sys
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qanet.errors import UserError
from qanet.files import (
    DamagedFile,
    cache_directory,
    check_readable,
    decoded_lines,
    digest_of,
    locked,
    map_array,
    pack_json,
    parse_json,
    read_arrays,
    read_lines,
    remove_parts,
    unpack_json,
    write_csv,
    write_file,
    write_text,
)


def listing(directory):
    return [entry.name for entry in directory.iterdir()]


def test_writes_and_makes_the_directories(tmp_path):
    path = tmp_path / "new" / "newer" / "file.bin"
    write_file(path, lambda file: file.write(b"\x00\xff"))
    assert path.read_bytes() == b"\x00\xff"
    assert listing(path.parent) == ["file.bin"]


def test_replaces_the_old_content(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old, and longer")
    write_file(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"
    assert listing(tmp_path) == ["file"]


def test_a_name_may_be_as_long_as_the_disk_allows(tmp_path):
    path = tmp_path / ("名" * 83 + ".json")
    try:
        path.touch()
    except OSError:
        pytest.skip("names are shorter here")
    write_file(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"


def test_the_old_content_stands_until_the_new_is_whole(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    seen = []

    def write(file):
        file.write(b"half")
        file.flush()
        seen.append(path.read_bytes())

    write_file(path, write)
    assert seen == [b"old"]
    assert path.read_bytes() == b"half"


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt])
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_writer_that_fails_changes_nothing(tmp_path, error, old):
    path = tmp_path / "file"
    if old is not None:
        path.write_bytes(old)

    def fail(file):
        file.write(b"half")
        raise error("stop")

    with pytest.raises(UserError if error is OSError else error, match="stop"):
        write_file(path, fail)
    if old is None:
        assert listing(tmp_path) == []
    else:
        assert path.read_bytes() == old
        assert listing(tmp_path) == ["file"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_disk_that_fails_changes_nothing(tmp_path, monkeypatch, step):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(UserError) as caught:
        write_file(path, lambda file: file.write(b"new"))
    assert str(caught.value) == f"{path}: cannot be written: no space left"
    assert path.read_bytes() == b"old"
    assert listing(tmp_path) == ["file"]


def test_parts_of_a_killed_process_are_removed(tmp_path, monkeypatch):
    def killed(*_, **options):
        raise SystemExit

    # Then neither the file nor what clears up after it is reached.
    monkeypatch.setattr(type(tmp_path), "unlink", killed)
    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(SystemExit):
        write_file(tmp_path / "weights.npz", lambda file: file.write(b"half"))
    monkeypatch.undo()
    (part,) = listing(tmp_path)
    others = [".name.tmp", "name.0123abcd.tmp", ".name.0123abcd", ".x.0123abcdef.tmp"]
    for name in others:
        (tmp_path / name).touch()

    remove_parts(tmp_path)
    remove_parts(tmp_path / "absent")

    assert part.startswith(".weights.npz.")
    assert sorted(listing(tmp_path)) == sorted(others)


@pytest.mark.skipif(os.name != "posix", reason="there are no such locks")
def test_a_directory_is_held_by_one_at_a_time(tmp_path):
    directory = tmp_path / "run"
    directory.mkdir()
    with locked(directory):
        refused = pytest.raises(UserError, match="run: another process is at work")
        with refused, locked(directory):
            pass
        with locked(tmp_path):
            pass
    with locked(directory):
        pass
    assert listing(directory) == []


def test_no_changed_bit_of_an_archive_changes_its_arrays(tmp_path):
    path = tmp_path / "file.npz"
    arrays = {"a": np.arange(9, dtype="float32"), "c": np.int64(3)}
    np.savez(path, **arrays)
    content, read = bytearray(path.read_bytes()), 0
    for place in range(len(content)):
        for bit in range(8):
            content[place] ^= 1 << bit
            path.write_bytes(content)
            content[place] ^= 1 << bit
            try:
                found = read_arrays(path)
            except DamagedFile:
                continue
            read += 1
            assert found.keys() == arrays.keys(), (place, bit)
            for name, array in arrays.items():
                assert found[name].tobytes() == array.tobytes(), (place, bit)
    # Times and rights of the files in it are not read.
    assert 0 < read < 4 * len(content)


class Unpickled:
    def __reduce__(self):
        return pytest.fail, ("was unpickled",)


def test_objects_are_never_unpickled(tmp_path):
    path = tmp_path / "arrays.npz"
    np.savez(path, array=np.array([Unpickled()], dtype=object))
    with pytest.raises(DamagedFile, match="pickle"):
        read_arrays(path)


@pytest.mark.parametrize(
    "text", ["", "one\r\ntwo\n", "Zoë 中 😀", "half a pair: \ud83d", "\ud83d\ude00"]
)
def test_text_is_utf_8_without_changes(tmp_path, text):
    path = tmp_path / "file.txt"
    write_text(path, text)
    assert path.read_bytes().decode("utf-8", "surrogatepass") == text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text(tmp_path, text):
    write_text(tmp_path / "file.txt", text)
    assert (tmp_path / "file.txt").read_bytes() == text.encode()


@pytest.mark.parametrize("variable", [None, ""])
def test_the_cache_is_below_the_home_directory(tmp_path, monkeypatch, variable):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME")
    if variable is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", variable)
    assert cache_directory() == tmp_path / ".cache" / "qanet"


def test_without_a_home_directory_the_cache_has_no_place(monkeypatch):
    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("pathlib.Path.home", home)
    with pytest.raises(UserError, match="set XDG_CACHE_HOME"):
        cache_directory()


def test_the_cache_is_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "qanet"


def test_rows_become_a_table(tmp_path):
    rows = [{"step": 2, "loss": 0.1 + 0.2}, {"step": 4, "loss": 1e-7}]
    write_csv(tmp_path / "history.csv", rows)
    with (tmp_path / "history.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [{k: float(v) for k, v in row.items()} for row in read] == rows
    assert list(read[0]) == ["step", "loss"]


@pytest.mark.parametrize("value", [None, 0.1, ["Zoë", "東京", "\ud800"], {"a": [1]}])
def test_json_beside_arrays(tmp_path, value):
    path = tmp_path / "arrays.npz"
    np.savez(path, value=pack_json(value))
    assert unpack_json(read_arrays(path)["value"]) == value


def test_an_array_that_is_no_json():
    with pytest.raises(ValueError, match="Expecting"):
        unpack_json(np.frombuffer(b"[1", dtype=np.uint8))


@pytest.mark.parametrize("name", ["text", "text.gz"])
def test_lines_are_read_plain_and_gzipped(tmp_path, name):
    path = tmp_path / name
    content = "\ufeffHi.\r\n\nZo\u00eb \u2028 \rb\tc \nlast".encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert list(read_lines(path)) == ["Hi.", "", "Zo\u00eb \u2028 \rb\tc ", "last"]


def test_lines_that_cannot_be_read(tmp_path):
    path = tmp_path / "text.gz"
    with pytest.raises(UserError, match="No such file"):
        list(read_lines(path))
    whole = gzip.compress(b"a\tb\n" * 1000)
    for content in (b"no archive", whole[: len(whole) // 2], whole[:-9] + b"\xff" * 9):
        path.write_bytes(content)
        with pytest.raises(UserError, match="not a whole gzip file"):
            list(read_lines(path))
    plain = tmp_path / "text"
    # Far behind what is decoded at once.
    plain.write_bytes(b"good\n" * 30_000 + b"caf\xe9\n")
    with pytest.raises(UserError, match="line 30001 is not UTF-8"):
        list(read_lines(plain))


def test_the_digest_tells_files_their_order_and_the_text_apart(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"1")
    other.write_bytes(b"2")
    asked = [([one, other], ""), ([other, one], ""), ([one], ""), ([one], "a")]
    assert len({digest_of(*arguments) for arguments in asked}) == 4
    before = digest_of([one])
    one.write_bytes(b"3")
    assert digest_of([one]) != before
    with pytest.raises(UserError, match="absent: cannot be read"):
        digest_of([tmp_path / "absent"])


def test_a_text_that_is_no_json():
    assert parse_json(b'{"a": [1.5]}') == {"a": [1.5]}
    for text in ("", "{", b"\xff", "[" * 100_000):
        with pytest.raises(ValueError, match=r".+"):
            parse_json(text)


def test_two_that_write_one_file_do_not_meet(tmp_path):
    """As threads do, or processes of one number in two containers."""
    path = tmp_path / "file"

    def write(file):
        write_file(path, lambda other: other.write(b"other"))
        assert path.read_bytes() == b"other"
        file.write(b"mine")

    write_file(path, write)
    assert path.read_bytes() == b"mine"
    assert listing(tmp_path) == ["file"]


def test_where_there_are_no_locks_nothing_is_held(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with locked(tmp_path), locked(tmp_path):
        pass
    monkeypatch.setitem(sys.modules, "fcntl", None)  # Windows
    with locked(tmp_path), locked(tmp_path):
        pass


@pytest.mark.skipif(os.name != "posix", reason="there are no such pipes")
def test_a_pipe_is_refused_before_somebody_waits_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="pipe: is a pipe, which is read once"):
        check_readable([tmp_path / "pipe"])


def test_the_digest_tells_where_a_file_ends(tmp_path):
    digests = set()
    for one, other in ((b"ab", b"c"), (b"a", b"bc")):
        (tmp_path / "one").write_bytes(one)
        (tmp_path / "other").write_bytes(other)
        digests.add(digest_of([tmp_path / "one", tmp_path / "other"]))
    assert len(digests) == 2


def test_a_gzip_file_that_is_damaged_inside(tmp_path):
    path = tmp_path / "text.gz"
    content = bytearray(gzip.compress(b"".join(b"%d\n" % i for i in range(1000))))
    content[10] = 0x07  # A block of no known kind.
    path.write_bytes(content)
    with pytest.raises(UserError, match="not a whole gzip file"):
        list(read_lines(path))


def test_a_byte_order_mark_is_one_in_the_first_line_alone():
    lines = ["\ufeffone\n".encode(), "\ufefftwo\n".encode()]
    assert list(decoded_lines(lines, "text")) == ["one", "\ufefftwo"]


def test_an_array_that_ends_before_its_file_is_damaged(tmp_path):
    """Its checksum would never be looked at."""
    path = tmp_path / "file.npz"
    np.savez(path, a=np.arange(10_000))
    content = path.read_bytes()
    # Nor is memory asked for what is not there.
    for shape in (b"(1000 ,), }", b"(99999,), }", b"(9999999999999,), }"):
        padded = b"(10000,), }".ljust(len(shape))
        path.write_bytes(content.replace(padded, shape))
        with pytest.raises(DamagedFile, match="another size than its array"):
            read_arrays(path)


@pytest.mark.parametrize("number", [errno.EIO, errno.EINVAL])
def test_what_a_disk_refuses_is_not_called_damaged(tmp_path, monkeypatch, number):
    path = tmp_path / "a.npz"
    np.savez(path, a=np.zeros(2))

    def refuse(file):
        raise OSError(number, "no")

    monkeypatch.setattr("qanet.files.zipfile.ZipFile", refuse)
    with pytest.raises(OSError if number == errno.EIO else DamagedFile):
        read_arrays(path)


def test_what_memory_has_no_room_for_is_not_called_damaged(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    np.savez(path, a=np.zeros(2))
    monkeypatch.setattr("qanet.files._read_array", mock.Mock(side_effect=MemoryError))
    with pytest.raises(MemoryError):
        read_arrays(path)
    monkeypatch.setattr(
        np.lib.format, "open_memmap", mock.Mock(side_effect=MemoryError)
    )
    with pytest.raises(MemoryError):
        map_array(path)
