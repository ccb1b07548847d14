"""Which words of a text stand in another text too (DrQA: Chen et al., 2017, section
3.2, "exact match" and "token features")."""

import keras
from keras import ops

from qanet.layers.look_up import PADDING, UNKNOWN

# Characters that words of one stem share: "invent", "inventor", "invention".
STEM = 5

# Of the hash of a word; an odd number whose bits look random, as int32.
MULTIPLIER = 0x9E3779B1 - 2**32


@keras.saving.register_keras_serializable(package="qanet")
class TextMatch(keras.layers.Layer):
    """Four numbers a word: its matches with another text, and how often it occurs.

    They are computed from rows and spellings alone, so a model has them without
    further inputs. Words are compared by their spelling, as far as
    `characters_per_word` goes; a word with an unknown character is spelled like no
    other and matches by its row of the vector table, if it has one.

    Args:
        lowercase: for each character its number in lower case. Empty: no character has
            one.

    Input: `words`, integers `(batch, length)`, and `characters`, integers
    `(batch, length, characters_per_word)`; the same of the other text.
    Output: float `(batch, length, 4)`, zero at padding: 1 where the other text has the
    word as it stands; in any case of its letters; a word of the same first `STEM`
    letters; and the logarithm of how often its own text has the word, in any case.
    """

    FEATURES = 4

    def __init__(self, lowercase=(), **kwargs):
        super().__init__(**kwargs)
        self.lowercase = tuple(lowercase)

    def call(self, words, characters, other_words, other_characters):
        folded = self._fold(characters)
        other_folded = self._fold(other_characters)

        def found(spelling, other_spelling):
            spelled = _spelled(words, spelling, nothing=0)
            other = _spelled(other_words, other_spelling, nothing=1)
            return ops.any(spelled[:, :, None] == other[:, None, :], axis=2)

        spelled = _spelled(words, folded, nothing=0)
        own = ops.cast(spelled[:, :, None] == spelled[:, None, :], "float32")
        # A word that nothing is like, not even itself, occurs once.
        count = ops.where(spelled == 0, 1.0, ops.sum(own, axis=2))
        features = [
            found(characters, other_characters),
            found(folded, other_folded),
            found(folded[:, :, :STEM], other_folded[:, :, :STEM]),
            ops.log(count),
        ]
        features = [ops.cast(feature, self.compute_dtype) for feature in features]
        return ops.stack(features, axis=-1)

    def _fold(self, characters):
        if not self.lowercase:
            return characters
        table = ops.convert_to_tensor(self.lowercase, dtype="int32")
        return ops.take(table, characters, axis=0)

    def compute_output_shape(self, words_shape, *others):
        return (*words_shape, self.FEATURES)

    def compute_output_spec(self, words, *others):
        return keras.KerasTensor(
            self.compute_output_shape(words.shape), dtype=self.compute_dtype
        )

    def get_config(self):
        return {**super().get_config(), "lowercase": self.lowercase}


def _spelled(words, spelling, nothing):
    """One number for each word, equal where the words are spelled alike.

    It is a polynomial hash of the characters, so that a pair of words costs one
    comparison. Two that differ have the same number once in 2**32 pairs.

    Args:
        words: integers `(batch, length)`, rows.
        spelling: integers `(batch, length, characters)`.
        nothing: the number of padding and of words of which nothing is known.

    Returns:
        Integers `(batch, length)`.
    """
    legible = ops.all(spelling != UNKNOWN, axis=-1)
    # With an unknown character the row belongs to the spelling. Never 0, which would
    # stay 0 without characters and come to `nothing`.
    number = ops.where(legible, 1, words)
    # Not a sum over an axis: ONNX Runtime's is wrong where 32 bits overflow.
    for column in range(spelling.shape[-1]):
        number = number * MULTIPLIER + spelling[:, :, column]
    known = (words != PADDING) & (legible | (words != UNKNOWN))
    return ops.where(known, number, nothing)
