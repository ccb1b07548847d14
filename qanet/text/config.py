"""Settings of the vocabulary; apart from it, so that they are read without NumPy."""

from typing import Any

from pydantic import Field, field_validator

from qanet.settings import LARGEST, Count, PositiveCount, Section, Size


class VocabularyConfig(Section):
    """Words and characters, or word pieces.

    Attributes:
        vectors: files of pretrained word vectors, or one; a word's vectors of all files
            are joined. Without any the model trains its own.
        extra_vectors: rows kept from the head of each file beside the words of the
            data, so that a trained reader knows frequent words of other texts.
        word_width: size of a word vector when no vectors are given.
        word_min_count: occurrences in the training data that earn a word a trained
            vector when no vectors are given.
        character_min_count: occurrences that earn a character a vector.
        characters_per_word: characters that a word is cut or padded to.
        pieces: word pieces, at most, that are made of the training data for a reader
            of word pieces that has none.
    """

    vectors: tuple[str, ...] = ()
    extra_vectors: Count = 100_000
    word_width: Size = 64
    word_min_count: PositiveCount = 5
    character_min_count: PositiveCount = 50
    characters_per_word: Size = 16
    pieces: int = Field(default=8000, ge=100, le=LARGEST)

    @field_validator("vectors", mode="before")
    @classmethod
    def _list_one_file(cls, value: Any) -> Any:
        if value is None:
            return ()
        return (value,) if isinstance(value, str) else value
