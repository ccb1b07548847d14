"""Which words of a text stand in another text too (DrQA: Chen et al., 2017, section
3.2, "exact match" and "token features")."""

import keras
from keras import ops

from qanet.layers.look_up import PADDING, UNKNOWN

# Characters that words of one stem share: "invent", "inventor", "invention".
STEM = 5


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
        real = ops.not_equal(words, PADDING)
        pairs = ops.logical_and(real[:, :, None], (other_words != PADDING)[:, None])
        same_row = ops.logical_and(
            words[:, :, None] == other_words[:, None, :],
            (words != UNKNOWN)[:, :, None],
        )

        def found(spelling, other_spelling):
            same = _same(spelling, other_spelling, same_row)
            return ops.any(ops.logical_and(same, pairs), axis=2)

        own_row = ops.logical_and(
            words[:, :, None] == words[:, None, :], (words != UNKNOWN)[:, :, None]
        )
        own = ops.logical_and(_same(folded, folded, own_row), real[:, None, :])
        count = ops.sum(ops.cast(own, "float32"), axis=2)
        features = [
            found(characters, other_characters),
            found(folded, other_folded),
            found(folded[:, :, :STEM], other_folded[:, :, :STEM]),
            # A word that nothing is like, not even itself, occurs once.
            ops.log(ops.maximum(count, 1.0)),
        ]
        features = [ops.cast(feature, self.compute_dtype) for feature in features]
        features = ops.stack(features, axis=-1)
        zero = ops.zeros((), dtype=features.dtype)
        return ops.where(real[:, :, None], features, zero)

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


def _same(spelling, other, same_row):
    """Whether two words are spelled alike, boolean `(batch, length, other length)`."""
    alike = ops.all(spelling[:, :, None, :] == other[:, None, :, :], axis=-1)
    legible = ops.all(spelling != UNKNOWN, axis=-1)
    return ops.logical_and(alike, ops.logical_or(legible[:, :, None], same_row))
