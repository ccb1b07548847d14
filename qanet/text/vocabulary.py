"""The vocabulary: the row of each word's vector, and the spelling of any word.

Words of a text are not limited to the vocabulary: one without a vector shares the
unknown row with others, but keeps its own characters.
"""

import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from qanet.errors import UserError
from qanet.files import write_file, write_text
from qanet.text.config import VocabularyConfig
from qanet.text.contextual import ContextualEncoder
from qanet.text.tokenizer import SOFT_HYPHEN, count_tokens, words_of
from qanet.text.vectors import WordVectors

PADDING = 0
UNKNOWN = 1
RESERVED = ["", "<unknown>"]

# Of a word; as the settings have it.
MOST_CHARACTERS = 10_000
# Of a word that is composed: the time grows as the square of its accents in a row.
COMPOSED_CHARACTERS = 100

WORDS_FILE = "vocabulary.json"
VECTORS_FILE = "vectors.npy"
CONTEXTUAL_DIRECTORY = "contextual"


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words that have a vector, and the characters that have one.

    Attributes:
        words: the word of each row of the vector table. Row 0 is padding, row 1 all
            words without a vector.
        characters: the character of each character number, with the same two first.
        characters_per_word: characters that a word is cut or padded to.
        vectors: pretrained vectors, float16 `(len(words), width)`, or `None` where
            the model trains its own.
        contextual: a frozen language model, which gives each word further vectors, by
            its text.
    """

    words: list[str]
    characters: list[str]
    characters_per_word: int
    vectors: np.ndarray | None = None
    contextual: ContextualEncoder | None = None

    # There is one way of splitting a text into words.
    key: ClassVar[str] = ""
    unit: ClassVar[str] = "words and signs"

    @classmethod
    def build(
        cls,
        counts: Counter[str],
        vectors: WordVectors | None,
        config: VocabularyConfig,
    ) -> Self:
        """The vocabulary of a training set.

        Args:
            counts: how often each word occurs in the training set.
            vectors: pretrained vectors; all of them are kept. With `None` the words
                that occur at least `config.word_min_count` times get a row.
            config: limits.
        """
        words, characters = Counter(), Counter()
        for word, count in counts.items():
            words[plain(word)] += count
            for character in plain(word):
                characters[character] += count
        if vectors is None:
            words = _frequent(words, config.word_min_count)
            table = None
        else:
            words = vectors.words
            # Half precision halves the run directory and costs 3 digits that the
            # vectors do not have.
            largest = np.finfo(np.float16).max
            table = vectors.table.clip(-largest, largest).astype(np.float16)
        return cls(
            words=RESERVED + words,
            characters=RESERVED + _frequent(characters, config.character_min_count),
            characters_per_word=config.characters_per_word,
            vectors=table,
        )

    def __len__(self) -> int:
        """How many rows the vector table has."""
        return len(self.words)

    def tokens(self, text: str) -> tuple[list[str], list[tuple[int, int]]]:
        """The words of a text, and where they stand; not only those with a vector."""
        return words_of(text)

    def count(self, text: str, most: int | None = None) -> int:
        """How many words a text has, which is so fast that `most` does not matter."""
        return count_tokens(text)

    def row(self, word: str) -> int:
        """The row of a word, of its `plain` form, of its lower case, or unknown."""
        rows, simple = self._row_of_word, plain(word)
        for form in (word, simple, word.lower(), simple.lower()):
            if form in rows:
                return rows[form]
        return UNKNOWN

    def spell(self, word: str) -> list[int]:
        """The character numbers of any word, at most `characters_per_word`."""
        numbers, word = self._number_of_character, plain(word)
        return [numbers.get(c, UNKNOWN) for c in word[: self.characters_per_word]]

    def table(self, words: Sequence[str]) -> dict[str, np.ndarray]:
        """What a model sees of a list of words whose first entry is padding.

        Returns:
            Two columns: `words`, int32 `(words,)`, rows of the vector table, and
            `characters`, int32 `(words, characters_per_word)`, character numbers, cut
            or filled up with 0.
        """
        rows = np.array([self.row(word) for word in words], dtype=np.int32)
        rows[0] = PADDING
        characters = np.zeros((len(words), self.characters_per_word), dtype=np.int32)
        for i, word in enumerate(words):
            spelling = self.spell(word)
            characters[i, : len(spelling)] = spelling
        return {"words": rows, "characters": characters}

    @cached_property
    def lowercase(self) -> tuple[int, ...]:
        """For each character the number of its lower case, or its own number."""
        numbers = self._number_of_character
        return tuple(
            numbers.get(character.lower(), number)
            for number, character in enumerate(self.characters)
        )

    def describe(self) -> str:
        """What it holds, in words."""
        return f"{len(self.words):,} word vectors, {len(self.characters):,} characters"

    def save(self, directory: Path) -> None:
        """Writes the vocabulary into a directory, which is made if need be."""
        if self.vectors is not None:
            write_file(
                directory / VECTORS_FILE,
                lambda file: np.save(file, self.vectors, allow_pickle=False),
            )
        if self.contextual is not None:
            self.contextual.save(directory / CONTEXTUAL_DIRECTORY)
        self.save_words(directory)

    def save_words(self, directory: Path) -> None:
        """Writes all but the vectors."""
        text = json.dumps(self.to_fields(), ensure_ascii=False, indent=0)
        write_text(directory / WORDS_FILE, text)

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Reads what `save` wrote, but for `contextual`.

        Raises:
            UserError: a file is missing or malformed.
        """
        return cls._load(directory, with_vectors=True)

    @classmethod
    def load_words(cls, directory: Path) -> Self:
        """Reads what `save_words` wrote; raises as `load` does."""
        return cls._load(directory, with_vectors=False)

    @classmethod
    def _load(cls, directory: Path, with_vectors: bool) -> Self:
        path = directory / WORDS_FILE

        def read_vectors() -> np.ndarray:
            nonlocal path  # An error is the vectors' from here on.
            path = directory / VECTORS_FILE
            with path.open("rb") as file:
                return np.lib.format.read_array(file, allow_pickle=False)

        try:
            text = path.read_bytes().decode("utf-8", "surrogatepass")
            fields = json.loads(text)
            return cls.from_fields(fields, read_vectors if with_vectors else None)
        except OSError as error:
            raise UserError(
                f"{path}: cannot be read: {error.strerror or error}"
            ) from None
        except MemoryError:
            raise
        # Besides JSON's errors nearly anything, from NumPy's header parser.
        except Exception as error:
            raise UserError(f"{path}: not a vocabulary: {error}") from None

    def to_fields(self) -> dict[str, Any]:
        """All but the vectors, to be stored as JSON."""
        return {
            "characters_per_word": self.characters_per_word,
            "pretrained": self.vectors is not None,
            "characters": self.characters,
            "words": self.words,
        }

    @classmethod
    def from_fields(
        cls, fields: object, read_vectors: Callable[[], np.ndarray] | None
    ) -> Self:
        """Reverses `to_fields`.

        Args:
            fields: what `to_fields` gave.
            read_vectors: called for the vectors where there are any; `None` leaves
                them out.

        Raises:
            ValueError: these are no such fields, or the vectors do not fit them.
        """
        fields = dict(_checked(fields))
        vectors = None
        if fields.pop("pretrained") and read_vectors:
            vectors = read_vectors()
            rows = len(vectors) if vectors.ndim == 2 else None
            if vectors.dtype != np.float16 or rows != len(fields["words"]):
                raise ValueError("it does not hold one vector for each word")
        return cls(**fields, vectors=vectors)

    @cached_property
    def _row_of_word(self) -> dict[str, int]:
        return _numbers(self.words)

    @cached_property
    def _number_of_character(self) -> dict[str, int]:
        return _numbers(self.characters)


def plain(word: str) -> str:
    """What a word is looked up and spelled by: composed, and without soft hyphens.

    Some systems write é as e and an accent (Unicode's NFD), and web pages say where a
    word may be divided. Words of more than `COMPOSED_CHARACTERS` are not composed.
    """
    if word.isascii():
        return word
    simple = word.replace(SOFT_HYPHEN, "")
    if len(simple) <= COMPOSED_CHARACTERS:
        simple = unicodedata.normalize("NFC", simple)
    # One that stands alone is a word for itself.
    return simple or word


def _numbers(entries: list[str]) -> dict[str, int]:
    """The number of each entry; no text can name the reserved ones."""
    reserved = len(RESERVED)
    return {entry: i for i, entry in enumerate(entries[reserved:], start=reserved)}


def _frequent(counts: Counter[str], least: int) -> list[str]:
    """Entries that occur at least so often, by frequency and then by code points."""
    entries = [entry for entry, count in counts.items() if count >= least]
    return sorted(entries, key=lambda entry: (-counts[entry], entry))


def _checked(fields: object) -> dict:
    """The fields of a vocabulary file, each of the right type."""
    types = {
        "characters_per_word": int,
        "pretrained": bool,
        "characters": list,
        "words": list,
    }
    if not isinstance(fields, dict) or fields.keys() != types.keys():
        raise ValueError(f"it must hold {', '.join(types)} and nothing else")
    for name, kind in types.items():
        value = fields[name]
        if type(value) is not kind:
            raise ValueError(f"{name} must be of type {kind.__name__}")
        if kind is list:
            if value[: len(RESERVED)] != RESERVED:
                raise ValueError(f"{name} must begin with {RESERVED}")
            if not all(type(entry) is str for entry in value):
                raise ValueError(f"{name} must hold strings only")
            # A word of the text may look like a reserved one.
            entries = value[len(RESERVED) :]
            if len(set(entries)) != len(entries):
                raise ValueError(f"{name} must differ from one another")
    if not 1 <= fields["characters_per_word"] <= MOST_CHARACTERS:
        raise ValueError(f"characters_per_word must be from 1 to {MOST_CHARACTERS:,}")
    return fields
