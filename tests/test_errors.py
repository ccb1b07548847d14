"""Tests of qanet.errors."""

import pytest

from qanet.errors import UserError, needing, reading, writing


def test_a_library_that_is_missing_and_one_that_is_broken():
    with pytest.raises(UserError) as missing, needing("this needs it", "qanet[it]"):
        import no_such_library  # noqa: F401
    assert str(missing.value) == "this needs it: pip install 'qanet[it]'"
    with pytest.raises(UserError) as broken, needing("this needs it", "it"):
        raise ImportError("GLIBC_2.34 not found\nmore")
    assert str(broken.value).endswith(
        "imported (GLIBC_2.34 not found); mend its installation"
    )
    assert isinstance(broken.value.__cause__, ImportError)


def test_a_text_that_cannot_be_read_is_a_users_mistake(tmp_path):
    path = tmp_path / "text.txt"
    with pytest.raises(UserError) as missing, reading(path):
        path.read_text()
    assert str(missing.value) == f"{path}: cannot be read: No such file or directory"
    path.write_bytes(b"caf\xe9")
    with pytest.raises(UserError) as damaged, reading("the file"):
        path.read_text(encoding="utf-8")
    assert str(damaged.value).startswith("the file: is not UTF-8 (byte 3)")
    with pytest.raises(KeyError), reading(path):
        raise KeyError


def test_a_file_that_cannot_be_written_is_a_users_mistake(tmp_path):
    path = tmp_path / "missing" / "text.txt"
    with pytest.raises(UserError) as missing, writing(path):
        path.write_text("text")
    assert str(missing.value) == f"{path}: cannot be written: No such file or directory"
    with pytest.raises(UserError) as nameless, writing("the file"):
        raise OSError("out of inodes")
    assert str(nameless.value) == "the file: cannot be written: out of inodes"
    with pytest.raises(KeyError), writing(path):
        raise KeyError
