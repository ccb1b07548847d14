"""How a word is spelled, in a few numbers (DrQA: Chen et al., 2017, section 3.2, "exact
match")."""

import keras
from keras import ops

from qanet.layers.look_up import PADDING, UNKNOWN

# Letters that inflected and derived words share: "invent", "inventor", "invention".
PREFIX = 5

# Ways of spelling a word: as it stands, in lower case, its first letters in lower case.
SPELLINGS = 3

# Of the hash of a word; an odd number whose bits look random, as int32.
MULTIPLIER = 0x9E3779B1 - 2**32

# The number of what is spelled like nothing.
NOTHING = 0


@keras.saving.register_keras_serializable(package="qanet")
class Spelling(keras.layers.Layer):
    """Numbers that tell how a word is spelled, so that words can be compared.

    Each is a hash, so that a pair of words costs one comparison. Words are told apart
    as far as `characters_per_word` goes; a word with an unknown character is spelled
    like no other and goes by its row of the vector table, if it has one.

    Args:
        lowercase: for each character its number in lower case. Empty: no character has
            one.

    Input: `words`, integers `(batch, length)`, rows of the vector table, and
    `characters`, integers `(batch, length, characters_per_word)`.
    Output: integers `(batch, length, 3)`: the hash of the word as it stands, in lower
    case, and of its first `PREFIX` letters in lower case. 0 is spelled like nothing,
    not even itself: padding, and words of which nothing is known.
    """

    def __init__(self, lowercase=(), **kwargs):
        super().__init__(**kwargs)
        self.lowercase = tuple(lowercase)

    def call(self, words, characters):
        lowered = self._lowered(characters)
        forms = characters, lowered, lowered[:, :, :PREFIX]
        return ops.stack([_hash(words, form) for form in forms], axis=-1)

    def _lowered(self, characters):
        if not self.lowercase:
            return characters
        table = ops.convert_to_tensor(self.lowercase, dtype="int32")
        return ops.take(table, characters, axis=0)

    def compute_output_shape(self, words_shape, characters_shape):
        return (*words_shape, SPELLINGS)

    def compute_output_spec(self, words, characters):
        shape = self.compute_output_shape(words.shape, characters.shape)
        return keras.KerasTensor(shape, dtype="int32")

    def get_config(self):
        return {**super().get_config(), "lowercase": self.lowercase}


def _hash(words, spelling):
    """One number for each word, equal where the words are spelled alike.

    It is a polynomial hash of the characters. Two words that differ have the same
    number once in 2**32 pairs.

    Args:
        words: integers `(batch, length)`, rows.
        spelling: integers `(batch, length, characters)`.

    Returns:
        Integers `(batch, length)`.
    """
    legible = ops.all(spelling != UNKNOWN, axis=-1)
    # With an unknown character the row belongs to the spelling. Never 0, which would
    # stay 0 without characters and come to `NOTHING`.
    number = ops.where(legible, 1, words)
    number = ops.concatenate([number[..., None], spelling], axis=-1)
    # Pairs of neighbours become one number until one is left. Not a sum over an axis:
    # ONNX Runtime's is wrong where 32 bits overflow.
    multiplier = MULTIPLIER
    while number.shape[-1] > 1:
        if number.shape[-1] % 2:
            number = ops.pad(number, [(0, 0)] * (len(number.shape) - 1) + [(1, 0)])
        number = number[..., 0::2] * multiplier + number[..., 1::2]
        multiplier = _as_int32(multiplier**2)
    known = (words != PADDING) & (legible | (words != UNKNOWN))
    return ops.where(known, number[..., 0], NOTHING)


def _as_int32(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31
