"""The words of an export: what each decides alone is kept in a table.

A model's first layers see one word at a time. What they make of a row of the vector
table is one row of the model's width; an export holds those in few bits, in a file that
is mapped into memory, so that only the rows of the words that are read are loaded.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qanet.errors import UserError
from qanet.files import write_file
from qanet.text.vocabulary import Vocabulary

TABLE_FILE = "word_table.npy"
SCALES_FILE = "word_scales.npy"

# Words whose columns are computed at once.
CHUNK = 1024


class FoldedTable(NamedTuple):
    """A row for each word of a vocabulary.

    Attributes:
        rows: `(words, width)`, float16, or int8 where there are scales.
        scales: float32 `(words, 1)`, factors of the rows; `None` without.
    """

    rows: np.ndarray
    scales: np.ndarray | None = None

    @classmethod
    def of(cls, table: np.ndarray, bits: int) -> "FoldedTable":
        """A table in few bits.

        Args:
            table: float `(words, width)`.
            bits: 16, half precision, or 8, integers with a scale a row.
        """
        if bits == 16:
            largest = np.finfo(np.float16).max
            return cls(table.clip(-largest, largest).astype(np.float16))
        largest = np.abs(table).max(axis=1, keepdims=True, initial=0.0)
        # A row of zeros stays one.
        scales = np.where(largest > 0.0, largest / 127.0, 1.0).astype(np.float32)
        return cls(np.rint(table / scales).astype(np.int8), scales)

    def look_up(self, numbers: np.ndarray) -> np.ndarray:
        """Rows, float32 `(numbers, width)`."""
        found = self.rows[numbers].astype(np.float32)
        return found if self.scales is None else found * self.scales[numbers]

    def save(self, directory: Path) -> None:
        """Writes it into a directory."""
        for name, array in ((TABLE_FILE, self.rows), (SCALES_FILE, self.scales)):
            if array is not None:
                save = partial(np.save, arr=array, allow_pickle=False)
                write_file(directory / name, save)

    @classmethod
    def load(cls, directory: Path, words: int) -> "FoldedTable":
        """Maps what `save` wrote into memory.

        Args:
            directory: where it was written.
            words: how many rows there must be.

        Raises:
            UserError: a file is missing or malformed.
        """
        rows = _map(directory / TABLE_FILE, words)
        if rows.dtype == np.float16:
            return cls(rows)
        scales = _map(directory / SCALES_FILE, words)
        if rows.dtype != np.int8 or scales.dtype != np.float32 or scales.shape[1] != 1:
            raise UserError(
                f"{directory / TABLE_FILE}: not a table of words; export it anew"
            )
        return cls(rows, scales)


def _map(path: Path, words: int) -> np.ndarray:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    # Nearly anything, from NumPy's header parser.
    except Exception as error:
        raise UserError(f"{path}: damaged: {str(error).splitlines()[0]}") from None
    if array.ndim != 2 or len(array) != words:
        raise UserError(f"{path}: does not hold one row for each word; export it anew")
    return array


class FoldedVocabulary:
    """A text encoder of words whose columns a network makes of folded rows.

    Args:
        vocabulary: the words and characters.
        folded: the table.
        word_side: from the columns `folded`, `words` and `characters`, `(words, ...)`
            each, to further columns.
        columns: the columns that are asked for.
    """

    vectors = None
    contextual = None
    key = Vocabulary.key
    unit = Vocabulary.unit

    def __init__(
        self,
        vocabulary: Vocabulary,
        folded: FoldedTable,
        word_side: Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]],
        columns: Set[str],
    ):
        self.vocabulary = vocabulary
        self.folded = folded
        self.word_side = word_side
        self.columns = columns
        self.tokens = vocabulary.tokens
        self.count = vocabulary.count
        self.describe = vocabulary.describe

    def __len__(self) -> int:
        """How many rows the table has."""
        return len(self.vocabulary)

    def table(self, words: Sequence[str]) -> dict[str, np.ndarray]:
        """See `qanet.text.encoders.TextEncoder.table`."""
        return self.columns_of(self.vocabulary.table(words))

    def columns_of(self, table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The columns that are asked for, of words in those of `Vocabulary.table`."""
        parts = []
        for first in range(0, max(1, len(table["words"])), CHUNK):
            part = {n: column[first : first + CHUNK] for n, column in table.items()}
            folded = {"folded": self.folded.look_up(part["words"])}
            parts.append(part | self.word_side(part | folded))
        return {
            name: np.concatenate([part[name] for part in parts])
            for name in parts[0]
            if name in self.columns
        }
