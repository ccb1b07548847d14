"""Checksums of a directory, as the program `sha256sum -c` reads them."""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from qanet.errors import UserError, reading
from qanet.files import write_text

CHECKSUM_FILE = "SHA256SUMS"

# A star stands for binary mode; the program `find` begins names with "./".
LINE = re.compile(rb"(?P<checksum>[0-9a-fA-F]{64}) [ *](?:\./)?(?P<name>.+)")


def write_checksums(directory: Path) -> None:
    """Writes `SHA256SUMS`: a line for each file of a directory and those below it."""
    lines = []
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        name = path.relative_to(directory).as_posix()
        lines.append(f"{_checksum(path)}  {name}\n")
    write_text(directory / CHECKSUM_FILE, "".join(lines))


def check_checksums(directory: Path, names: Iterable[str]) -> None:
    """Compares files with `SHA256SUMS`, where that is there and names them.

    Args:
        directory: where they are.
        names: of the files; one that is missing is not compared.

    Raises:
        UserError: a file is another one, or cannot be read.
    """
    path = directory / CHECKSUM_FILE
    if not path.is_file():
        return
    with reading(path):
        lines = path.read_bytes().splitlines()
    found = filter(None, map(LINE.fullmatch, lines))
    told = {match["name"]: match["checksum"].lower() for match in found}
    for name in names:
        path, checksum = directory / name, told.get(name.encode())
        if path.is_file() and checksum and checksum != _checksum(path).encode():
            raise UserError(
                f"{path}: is not the file that {CHECKSUM_FILE} tells of, but damaged "
                "or another; copy the directory anew"
            )


def _checksum(path: Path) -> str:
    with reading(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
