"""The words that a language model predicts."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from qanet.errors import UserError, reading
from qanet.files import write_text

# As in the vocabularies of allenai/bilm-tf, which begin with these.
MARKS = BEGIN, END, UNKNOWN = ("<S>", "</S>", "<UNK>")


class WordVocabulary:
    """Words in falling order of frequency, after the marks of a sentence's start and
    end and of unknown words.

    Args:
        words: the word of each number.

    Raises:
        ValueError: a word is there twice, or the first ones are not `MARKS`.
    """

    def __init__(self, words: Sequence[str]):
        self.words = list(words)
        self.number_of = {word: number for number, word in enumerate(self.words)}
        if len(self.number_of) != len(self.words):
            raise ValueError("words must differ from one another")
        if tuple(self.words[: len(MARKS)]) != MARKS:
            raise ValueError(f"the first words must be {', '.join(MARKS)}")

    @classmethod
    def count(cls, sentences: Iterable[Sequence[str]], size: int) -> Self:
        """The most frequent words of some sentences; of equally frequent ones, those
        that come first in the alphabet.

        Args:
            sentences: their words.
            size: how many words, marks included, at most.
        """
        counts = Counter(word for sentence in sentences for word in sentence)
        for mark in MARKS:
            counts.pop(mark, None)
        words = sorted(counts, key=lambda word: (-counts[word], word))
        return cls([*MARKS, *words[: size - len(MARKS)]])

    def __len__(self) -> int:
        return len(self.words)

    def numbers(self, words: Sequence[str]) -> np.ndarray:
        """The number of each word, int32 `(words,)`."""
        unknown = self.number_of[UNKNOWN]
        numbers = [self.number_of.get(word, unknown) for word in words]
        return np.array(numbers, dtype=np.int32)

    def save(self, path: Path) -> None:
        """Writes the words, one a line."""
        write_text(path, "\n".join(self.words) + "\n")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Reads what `save` wrote.

        Raises:
            UserError: the file is missing or no such vocabulary.
        """
        with reading(path):
            text = path.read_bytes().decode("utf-8", "surrogatepass")
        try:
            return cls(text.removesuffix("\n").split("\n"))
        except ValueError as error:
            raise UserError(f"{path}: not a vocabulary: {error}") from None
