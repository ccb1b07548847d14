"""The words of an export: what each decides alone is kept in a table.

A model's first layers see one word at a time. What they make of a row of the vector
table is one row of the model's width; an export holds those in few bits, in a file that
is mapped into memory, so that only the rows of the words that are read stay there.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qanet.errors import UserError, reading
from qanet.files import DamagedFile, map_array, write_file
from qanet.text.vocabulary import Vocabulary

TABLE_FILE = "word_table.npy"
SCALES_FILE = "word_scales.npy"

# Numbers of a row that have a scale in common.
GROUP = 32
# Words whose columns are computed at once.
CHUNK = 1024
# Words whose columns are kept, and characters of the longest of them.
MOST_KEPT = 1 << 13
LONGEST_KEPT = 32


class FoldedTable(NamedTuple):
    """A row for each word of a vocabulary.

    Attributes:
        rows: float16 or int8 `(words, width)`, or uint8 `(words, width / 2)`, two
            integers of 4 bits each.
        scales: float16 `(words, groups)`, factors of the integers of a row's parts;
            `None` where the rows are floats.
    """

    rows: np.ndarray
    scales: np.ndarray | None = None

    @classmethod
    def of(cls, table: np.ndarray, bits: int) -> "FoldedTable":
        """A table in few bits.

        Args:
            table: float `(words, width)`; for 4 bits, of even width.
            bits: 16, half precision, or 8 or 4, integers with a scale for each
                `GROUP` of them.
        """
        largest = float(np.finfo(np.float16).max)
        table = table.clip(-largest, largest)
        if bits == 16:
            return cls(table.astype(np.float16))
        width = table.shape[1]
        groups = table.reshape(len(table), -1, GROUP if width % GROUP == 0 else width)
        most = 2 ** (bits - 1) - 1
        scales = (np.abs(groups).max(axis=2) / most).astype(np.float16)
        # A group of zeros stays one.
        scales[scales == 0.0] = 1.0
        integers = np.rint(groups / scales[:, :, None].astype(np.float32))
        integers = integers.clip(-most, most).reshape(table.shape).astype(np.int8)
        if bits == 4:
            shifted = (integers + 8).astype(np.uint8)
            return cls(shifted[:, 0::2] | shifted[:, 1::2] << 4, scales)
        return cls(integers, scales)

    def look_up(self, numbers: np.ndarray) -> np.ndarray:
        """Rows, float32 `(numbers, width)`."""
        found = self.rows[numbers]
        if self.scales is None:
            return found.astype(np.float32)
        if found.dtype == np.uint8:
            pairs = np.stack([found & 15, found >> 4], axis=-1)
            found = pairs.reshape(len(found), -1).astype(np.int8) - 8
        scales = self.scales[numbers].astype(np.float32)
        # Infinite ones are of a damaged file; what is made of them is refused.
        with np.errstate(invalid="ignore"):
            groups = found.reshape(*scales.shape, -1) * scales[:, :, None]
        return groups.reshape(found.shape)

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
        rows, scales = _map(directory / TABLE_FILE, words), None
        fits = rows.dtype in (np.float16, np.int8, np.uint8)
        if fits and rows.dtype != np.float16:
            scales = _map(directory / SCALES_FILE, words)
            width = rows.shape[1] * (2 if rows.dtype == np.uint8 else 1)
            groups = scales.shape[1]
            fits = scales.dtype == np.float16 and groups > 0 and width % groups == 0
        if not fits:
            raise UserError(
                f"{directory / TABLE_FILE}: not a table of words; export it anew"
            )
        return cls(rows, scales)


def _map(path: Path, words: int) -> np.ndarray:
    with reading(path):
        try:
            array = map_array(path)
        except DamagedFile as error:
            raise UserError(f"{error}; export it anew") from None
    if array.ndim != 2 or len(array) != words:
        raise UserError(f"{path}: does not hold one row for each word; export it anew")
    return array


class FoldedVocabulary:
    """A text encoder of words whose columns a network makes of folded rows.

    The columns of words are kept, until there are too many and it begins anew: texts
    that are read one after the other have many words in common. Several threads may
    use one encoder.

    Args:
        vocabulary: the words and characters.
        folded: the table.
        word_side: from the columns `folded`, `words` and `characters`, `(words, ...)`
            each, to further columns.
        columns: the columns that are asked for.
    """

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
        self.columns = sorted(columns)
        self._kept: dict[str, tuple[np.ndarray, ...]] = {}
        self.tokens = vocabulary.tokens
        self.count = vocabulary.count

    def __len__(self) -> int:
        """How many rows the table has."""
        return len(self.vocabulary)

    def table(self, words: Sequence[str]) -> dict[str, np.ndarray]:
        """See `qanet.text.encoders.TextEncoder.table`."""
        if len(words) > MOST_KEPT:
            return self.columns_of(self.vocabulary.table(words))
        # Other threads may add to it meanwhile; nobody takes anything out.
        kept = self._kept
        new = [word for word in words[1:] if word not in kept]
        if len(kept) + len(new) > MOST_KEPT:
            kept, new = {}, words[1:]
        found = {}
        if new or not kept:
            columns = self.columns_of(self.vocabulary.table(["", *new])).values()
            # Copies, since a part of an array would keep the whole.
            rows = [tuple(map(np.copy, row)) for row in zip(*columns, strict=True)]
            found = dict(zip(["", *new], rows, strict=True))
            kept |= {word: found[word] for word in found if len(word) <= LONGEST_KEPT}
            self._kept = kept
        rows = [found.get(word) or kept[word] for word in words]
        columns = map(np.stack, zip(*rows, strict=True))
        return dict(zip(self.columns, columns, strict=True))

    def columns_of(self, table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The columns that are asked for, of words in those of `Vocabulary.table`."""
        parts = []
        for first in range(0, max(1, len(table["words"])), CHUNK):
            part = {n: column[first : first + CHUNK] for n, column in table.items()}
            folded = {"folded": self.folded.look_up(part["words"])}
            parts.append(part | self.word_side(part | folded))
        return {
            name: np.concatenate([part[name] for part in parts])
            for name in self.columns
        }
