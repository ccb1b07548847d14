"""Word vectors: reads those a data set needs from a GloVe, fastText or word2vec file.

The file is text, `word number number ...` on each line with single blanks between,
plain or gzipped, possibly after a first line `count dimension`. It is streamed: what
stays in memory is the rows kept, so a file of 5 GB is as good as a small one. What was
kept can be cached, for reading such a file takes minutes.
"""

import codecs
import hashlib
import json
import math
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from qanet.console import log
from qanet.errors import UserError, reading
from qanet.files import byte_lines, pack_json, read_arrays, unpack_json, write_cache

RESERVED_ROWS = 2  # padding and unknown

_CACHE_FORMAT = 2
_MEBIBYTE = 1 << 20


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words and the table of their vectors.

    Attributes:
        words: The words in the order of their file, each once. Word `i` has row
            `i + 2` of the table.
        table: Float32 array of shape `(2 + len(words), dimension)`. Row 0 (padding)
            and row 1 (unknown) are zero.
    """

    words: list[str]
    table: np.ndarray

    def __post_init__(self) -> None:
        if self.table.ndim != 2 or len(self.table) != RESERVED_ROWS + len(self.words):
            raise ValueError(
                f"{len(self.words)} words do not fit a table of shape "
                f"{self.table.shape}"
            )


def read_vectors(
    path: str | Path, words: Collection[str], extra: int = 0
) -> WordVectors:
    """Reads the vectors of the given words from a text file.

    Keeps the rows whose word is one of `words` or the lower case of one, and the first
    `extra` rows whatever their word. Of several rows with one word the first counts.
    Only the rows kept are parsed as numbers; of the others the columns are counted.

    Args:
        path: The file; gzipped if its name ends in `.gz`. A word may contain blanks
            (GloVe 840B has some), but not end in a number after a blank: that is taken
            for a number too many.
        words: The words wanted.
        extra: How many rows from the top to keep besides.

    Raises:
        UserError: The file is missing, empty, damaged or not UTF-8, or one of its lines
            has the wrong number of columns or something else than a finite float32.
    """
    path = Path(path)
    lines = _numbered_lines(path)
    dimension, declared, lines = _dimension(path, lines)
    wanted = {*words, *(word.lower() for word in words)}
    kept: dict[str, None] = {}
    rows = bytearray(RESERVED_ROWS * dimension * np.float32().itemsize)
    for order, (number, line) in enumerate(lines):
        try:
            word, numbers = _split(line, dimension)
            if word in kept or (word not in wanted and order >= extra):
                continue
            rows += _parse(numbers).tobytes()
        except UnicodeDecodeError:
            raise UserError(f"{path}, line {number}: not UTF-8 text") from None
        except ValueError as error:
            raise UserError(f"{path}, line {number}: {error}") from None
        kept[word] = None
    if declared not in (None, order + 1):
        log.warning(
            f"{path}: holds {order + 1:,} of the {declared:,} vectors that its first "
            "line tells of; where it was not shortened on purpose, get it again"
        )
    return WordVectors(
        list(kept), np.frombuffer(rows, np.float32).reshape(-1, dimension)
    )


def join_vectors(parts: Sequence[WordVectors]) -> WordVectors:
    """The vectors of several files side by side.

    A word of any file has a row. Its part of another file is that of the same word,
    else that of its lower case, for files differ in whether they tell cases apart; else
    zero.

    Args:
        parts: At least one file's vectors.

    Returns:
        Vectors whose dimension is the sum of the parts', the words in the order of
        the parts.
    """
    words = list(dict.fromkeys(chain.from_iterable(part.words for part in parts)))
    tables = []
    for part in parts:
        row_of = {word: row for row, word in enumerate(part.words, RESERVED_ROWS)}
        rows = [row_of.get(word, row_of.get(word.lower(), 0)) for word in words]
        tables.append(part.table[[0] * RESERVED_ROWS + rows])
    return WordVectors(words, np.concatenate(tables, axis=1))


def load_vectors(
    path: str | Path, words: Collection[str], extra: int, cache_directory: str | Path
) -> WordVectors:
    """Does what `read_vectors` does, but reads an unchanged file only once.

    The result is kept in the cache directory under a name that stands for the request
    and the file. To hash all of a file of several GB would take as long as to read it,
    so the file is known by its size, its time of modification and the SHA-256 of its
    first and its last MiB. A damaged cache file is rebuilt; one that cannot be written
    is warned of and done without.

    Args:
        path: As for `read_vectors`.
        words: As for `read_vectors`; their order does not matter.
        extra: As for `read_vectors`.
        cache_directory: Where to keep the result; made if it does not exist.

    Raises:
        UserError: As for `read_vectors`.
    """
    path = Path(path)
    cache = Path(cache_directory) / f"{_cache_key(path, words, extra)}.npz"
    vectors = _read_cache(cache)
    if vectors is None:
        log.info("reading %s", path)
        vectors = read_vectors(path, words, extra)
        _write_cache(cache, vectors)
    return vectors


def _numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yields the lines of a file, counted from 1, without what ends them.

    A byte order mark is left out, and so are empty lines at the end.
    """
    empty = None
    for number, line in enumerate(byte_lines(path), start=1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        # fastText and word2vec put a blank before the end of each line.
        line = line.rstrip(b" \r\n")
        if not line:
            empty = empty or number
            continue
        if empty:
            yield empty, b""
            empty = None
        yield number, line


def _dimension(
    path: Path, lines: Iterator[tuple[int, bytes]]
) -> tuple[int, int | None, Iterator[tuple[int, bytes]]]:
    """The length of the vectors, how many a header tells of, and their lines."""
    number, line = next(lines, (0, b""))
    declared = None
    header = re.fullmatch(rb"(\d{1,18}) (\d{1,9})", line)
    if header:
        declared, dimension = int(header[1]), int(header[2])
        number, line = next(lines, (0, b""))
        # Before there is room made for so many.
        columns = line.count(b" ")
        if number and columns < dimension:
            raise UserError(
                f"{path}, line {number}: {columns} numbers after the word instead of "
                f"{dimension}"
            )
    else:
        dimension = line.count(b" ")
    if number == 0:
        raise UserError(f"{path}: holds no vectors")
    if dimension == 0:
        raise UserError(f"{path}, line 1: not a word and its numbers, blanks between")
    return dimension, declared, chain([(number, line)], lines)


def _split(line: bytes, dimension: int) -> tuple[str, bytes]:
    """The word of a line, and the rest with its numbers."""
    columns = line.count(b" ")
    if columns >= dimension:
        *word, numbers = line.split(b" ", columns - dimension + 1)
        if len(word) == 1 or not _is_number(word[-1]):
            return b" ".join(word).decode(), numbers
    raise ValueError(f"{columns} numbers after the word instead of {dimension}")


def _is_number(text: bytes) -> bool:
    try:
        return math.isfinite(float(text))  # "to infinity" would be a word
    except ValueError:
        return False


def _parse(numbers: bytes) -> np.ndarray:
    with np.errstate(over="ignore"):  # what overflows becomes infinite: see below
        vector = np.array(numbers.split(b" "), dtype=np.float32)
    if not np.isfinite(vector).all():
        raise ValueError("a number is not finite")
    return vector


def _cache_key(path: Path, words: Collection[str], extra: int) -> str:
    with reading(path), open(path, "rb") as file:
        state = os.fstat(file.fileno())
        head = file.read(_MEBIBYTE)
        file.seek(max(0, state.st_size - _MEBIBYTE))
        tail = file.read()
    request = [
        _CACHE_FORMAT,
        path.suffix,
        state.st_size,
        state.st_mtime_ns,
        hashlib.sha256(head).hexdigest(),
        hashlib.sha256(tail).hexdigest(),
        extra,
        sorted(set(words)),
    ]
    return hashlib.sha256(json.dumps(request).encode()).hexdigest()


def _read_cache(cache: Path) -> WordVectors | None:
    """The vectors cached, or None if there are none or the file is damaged."""
    try:
        arrays = read_arrays(cache)
        return WordVectors(unpack_json(arrays["words"]), arrays["table"])
    except Exception:  # there is no list of all that a damaged file can raise
        return None


def _write_cache(cache: Path, vectors: WordVectors) -> None:
    words = pack_json(vectors.words)
    write_cache(cache, lambda file: np.savez(file, words=words, table=vectors.table))
