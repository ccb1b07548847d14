"""Tests of qanet.errors."""

import pytest

from qanet.errors import UserError, reading


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
