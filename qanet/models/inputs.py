"""The inputs that every reading model has, and the sizes it must know."""

from dataclasses import dataclass

import keras
from keras import ops


@dataclass(frozen=True)
class EmbeddingSizes:
    """What a model must know of the vocabulary.

    Attributes:
        rows: rows of the vector table, padding and unknown included.
        width: size of a word vector.
        characters: size of the alphabet, padding and unknown included.
        characters_per_word: characters that a word is cut or padded to.
        pretrained: whether the vectors were given; otherwise they are trained.
        lowercase: for each character the number of its lower case; empty where no
            character has one.
    """

    rows: int
    width: int
    characters: int
    characters_per_word: int
    pretrained: bool
    lowercase: tuple[int, ...] = ()


@dataclass(frozen=True)
class ReadingInputs:
    """Symbolic inputs and the masks that follow from them.

    Attributes:
        tensors: the model's inputs by name. `context_words` and `question_words`
            are int32 `(batch, length)` rows of the vector table, 0 at padding;
            `context_characters` and `question_characters` are int32
            `(batch, length, characters_per_word)`.
        context_mask, question_mask: boolean `(batch, length)`, true where real.
    """

    tensors: dict
    context_mask: keras.KerasTensor
    question_mask: keras.KerasTensor

    def __getattr__(self, name):
        try:
            return self.tensors[name]
        except KeyError:
            raise AttributeError(name) from None


def reading_inputs(characters_per_word: int) -> ReadingInputs:
    """Makes the symbolic inputs of a reading model."""
    tensors = {}
    for text in ("context", "question"):
        tensors[f"{text}_words"] = keras.Input(
            (None,), dtype="int32", name=f"{text}_words"
        )
        tensors[f"{text}_characters"] = keras.Input(
            (None, characters_per_word), dtype="int32", name=f"{text}_characters"
        )
    return ReadingInputs(
        tensors,
        context_mask=ops.not_equal(tensors["context_words"], 0),
        question_mask=ops.not_equal(tensors["question_words"], 0),
    )
