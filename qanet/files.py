"""Files that are written whole or not at all, and lines and arrays read with care.

Also locks, digests, and where the cache is.
"""

import contextlib
import csv
import errno
import gzip
import hashlib
import io
import json
import math
import os
import re
import secrets
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from qanet.console import log
from qanet.errors import UserError, first_line, reading, writing


def write_file(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Lets `write` fill a file that then takes the place of `path`.

    The directory is made if need be. Whoever reads `path` sees the old content or the
    new, never a part.

    Raises:
        UserError: the disk refuses it.
    """
    # Not by process number: containers that share a directory have the same ones. Of a
    # long name only the beginning: with what is added it might be too long.
    temporary = path.with_name(f".{path.name[:40]}.{secrets.token_hex(4)}.tmp")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def write_cache(path: Path, write: Callable[[IO[bytes]], Any]) -> bool:
    """As `write_file`; tells whether it went well, and warns where it did not."""
    try:
        write_file(path, write)
    except UserError as error:
        log.warning("%s; the next start will take as long", error)
        return False
    return True


def remove_parts(directory: Path, unwritten: float = -math.inf) -> None:
    """Removes what processes that were killed within `write_file` have left.

    What cannot be removed stays.

    Args:
        directory: it need not be there.
        unwritten: seconds for which nobody has written a part; by default any, for a
            directory that no other process writes.
    """
    for path in directory.glob(".*.tmp"):
        if re.fullmatch(r"\..+\.[0-9a-f]{8}\.tmp", path.name):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime >= unwritten:
                    path.unlink()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a file or directory, so that no other process can hold it meanwhile.

    It is let go when the process ends, however that ends. Holds nothing on Windows and
    on file systems without locks, and on NFS no directory.

    Raises:
        OSError: it cannot be opened.
        UserError: another process holds it.
    """
    try:
        import fcntl
    except ModuleNotFoundError:  # Windows
        yield
        return
    # NFS locks only what is open for writing, which a directory cannot be.
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{path}: another process is at work there; let it end, or stop it"
            ) from None
        except OSError:
            pass  # No locks here.
        yield
    finally:
        os.close(handle)


def cache_directory() -> Path:
    """Where tokens and vectors are kept for the next start; may be deleted any time.

    Raises:
        UserError: there is no home directory, and nothing else is set.
    """
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "qanet"
    try:
        return Path.home() / ".cache" / "qanet"
    except RuntimeError:
        raise UserError(
            "there is no home directory for the cache; set XDG_CACHE_HOME to a "
            "directory"
        ) from None


def check_readable(files: Iterable[str | Path]) -> None:
    """Refuses what cannot be opened, or read again, before the work with it begins."""
    for file in files:
        if Path(file).is_fifo():
            raise UserError(f"{file}: is a pipe, which is read once; give a file")
        with reading(file), open(file, "rb"):
            pass


def digest_of(paths: Iterable[Path], seed: str = "") -> str:
    """Tells the contents of files, and a text beside them, from others.

    Raises:
        UserError: a file cannot be read.
    """
    digest = hashlib.sha256(seed.encode())
    for path in paths:
        with reading(path), path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def write_text(path: Path, text: str) -> None:
    """Writes a text file in UTF-8, with `write_file`.

    Half a surrogate pair, which a word may be, is written as Python would read it.
    """
    write_file(path, lambda file: file.write(text.encode("utf-8", "surrogatepass")))


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Writes a table, at least one row, with a line of its columns' names."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=rows[0])
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def read_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """The lines of a text, without their ends.

    Args:
        path: UTF-8; gzipped if its name ends in `.gz`.

    Raises:
        UserError: the file cannot be read, is not UTF-8 or not a whole gzip file.
    """
    yield from decoded_lines(byte_lines(path), path)


def byte_lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The lines of a file with their ends, for what is faster than text.

    Args:
        path: gzipped if its name ends in `.gz`.

    Raises:
        UserError: the file cannot be read or is not a whole gzip file.
    """
    opened = gzip.open if str(path).endswith(".gz") else open
    with reading(path):
        try:
            with opened(path, "rb") as file:
                yield from file
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise UserError(f"{path}: is not a whole gzip file; get it again") from None


def decoded_lines(
    lines: Iterable[bytes], name: str | os.PathLike[str]
) -> Iterator[str]:
    """Lines of bytes as text, without their ends and a first byte order mark.

    Raises:
        UserError: a line is not UTF-8; the message has `name` and its number.
    """
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise UserError(
                f"{name}: line {number} is not UTF-8; save it as UTF-8"
            ) from None
        yield text.rstrip("\r\n")


def pack_json(value: Any) -> np.ndarray:
    """A value as JSON in a uint8 array, to stand beside others in an `.npz` file."""
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def unpack_json(array: np.ndarray) -> Any:
    """Reverses `pack_json`; raises `ValueError` where the array holds no JSON."""
    return parse_json(array.tobytes())


def parse_json(text: str | bytes) -> Any:
    """What a JSON text stands for; raises `ValueError` where it is none."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


class DamagedFile(Exception):
    """A file is there, but it is cut off, changed or something else altogether."""


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Reads all arrays of an `.npz` file; objects are never unpickled.

    Raises:
        OSError: the file cannot be opened or read.
        DamagedFile: it is not a whole archive of plain arrays.
    """
    # Opened here because NumPy leaves the file of a damaged archive open.
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                _check_count(file, archive)
                return {
                    member.filename.removesuffix(".npy"): _read_array(archive, member)
                    for member in archive.infolist()
                }
        # Nearly anything: the errors of zip, of zlib, of NumPy's header parser.
        except Exception as error:
            # The file may be whole where memory, a disk or a network refuses.
            if isinstance(error, MemoryError) or _is_of_the_disk(error):
                raise
            raise DamagedFile(f"{path}: damaged: {error}") from error


def map_array(path: Path) -> np.ndarray:
    """The array of an `.npy` file, which stays on disk until it is read.

    Raises:
        OSError: the file cannot be opened or read.
        DamagedFile: it is not a whole plain array.
    """
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (OSError, MemoryError):
        raise
    # Nearly anything, from NumPy's header parser.
    except Exception as error:
        raise DamagedFile(f"{path}: damaged: {first_line(error)}") from error


def _is_of_the_disk(error: Exception) -> bool:
    """Whether it tells of a disk or a network, not of what a file holds."""
    of_disks = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.ENOMEM)
    return getattr(error, "errno", None) in of_disks


def _check_count(file: IO[bytes], archive: zipfile.ZipFile) -> None:
    """Raises `ValueError` where a damaged directory of the archive hides members."""
    # NumPy writes no comment behind; from 65,535 on the count stands elsewhere.
    file.seek(-12, os.SEEK_END)
    count = int.from_bytes(file.read(2), "little")
    if count not in (len(archive.infolist()), 0xFFFF):
        raise ValueError("its directory is not whole")


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    # A damaged header may tell of more than the memory holds, before the checksum is
    # compared.
    with archive.open(member) as file:
        claimed = _array_bytes(file)
        if claimed != member.file_size - file.tell():
            raise ValueError(f"{member.filename} has another size than its array")
    with archive.open(member) as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
        # The checksum is compared at the end.
        if file.read(1):
            raise ValueError(f"{member.filename} is longer than its array")
    return array


def _array_bytes(file: IO[bytes]) -> int:
    """How many bytes of numbers the header of an `.npy` file tells of."""
    version = np.lib.format.read_magic(file)
    is_first = version == (1, 0)
    form = np.lib.format
    read = form.read_array_header_1_0 if is_first else form.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("it holds objects, which pickle would make")
    return math.prod(shape) * dtype.itemsize
