"""Tests of qanet.checksums."""

import shutil
import subprocess

import pytest

from qanet.checksums import CHECKSUM_FILE, check_checksums, write_checksums
from qanet.errors import UserError

# Of the three letters abc, from FIPS 180-2, appendix B.1.
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "b c").write_bytes(b"abc")
    (tmp_path / "a").write_bytes(b"")
    write_checksums(tmp_path)
    return tmp_path


def test_every_file_has_its_checksum(directory):
    first, second = (directory / CHECKSUM_FILE).read_text("utf-8").splitlines()
    assert first.endswith("  a")
    assert second == f"{ABC}  below/b c"


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="sha256sum is not installed")
def test_the_program_reads_them(directory):
    command = ["sha256sum", "--check", "--strict", CHECKSUM_FILE]
    assert subprocess.run(command, cwd=directory, capture_output=True).returncode == 0
    (directory / "a").write_bytes(b"changed")
    assert subprocess.run(command, cwd=directory, capture_output=True).returncode == 1


def test_files_that_are_as_told(directory):
    (directory / "new").write_bytes(b"of which nothing is told")
    check_checksums(directory, ("a", "below/b c", "new", "absent"))
    (directory / CHECKSUM_FILE).write_bytes(b"\xff\n\n  a\n")
    check_checksums(directory, ("a",))
    (directory / CHECKSUM_FILE).unlink()
    check_checksums(directory, ("a",))


@pytest.mark.parametrize("line", ["{} *b c", "{}  ./b c", "{} *./b c"])
def test_other_forms_of_a_line(tmp_path, line):
    (tmp_path / "b c").write_bytes(b"abc")
    for checksum in (ABC, ABC.upper()):
        (tmp_path / CHECKSUM_FILE).write_text(line.format(checksum) + "\n")
        check_checksums(tmp_path, ["b c"])
    (tmp_path / "b c").write_bytes(b"changed")
    with pytest.raises(UserError, match="b c: is not the file"):
        check_checksums(tmp_path, ["b c"])


def test_a_file_that_is_another(directory):
    (directory / "a").write_bytes(b"changed")
    check_checksums(directory, ("below/b c",))
    with pytest.raises(UserError, match=r"a: is not the file that SHA256SUMS tells of"):
        check_checksums(directory, ("below/b c", "a"))
