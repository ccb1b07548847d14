"""Checksums of a directory, as the program `sha256sum -c` reads them."""

import hashlib
from pathlib import Path

from qanet.files import write_text

CHECKSUM_FILE = "SHA256SUMS"


def write_checksums(directory: Path) -> None:
    """Writes `SHA256SUMS`: a line for each file of a directory and those below it."""
    lines = []
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
        lines.append(f"{checksum}  {path.relative_to(directory).as_posix()}\n")
    write_text(directory / CHECKSUM_FILE, "".join(lines))
