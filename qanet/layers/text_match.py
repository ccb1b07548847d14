"""Which words of a text stand in another text too (DrQA: Chen et al., 2017, section
3.2, "exact match" and "token features")."""

import keras
from keras import ops

from qanet.layers.spelling import NOTHING, SPELLINGS


@keras.saving.register_keras_serializable(package="qanet")
class TextMatch(keras.layers.Layer):
    """Four numbers a word: its matches with another text, and how often it occurs.

    DrQA matches lemmas, not prefixes, normalises the frequency, and has the features at
    the paragraph's words only, joined to their vectors.

    Input: integers `(batch, length, 3)`, the `Spelling` of a text, and that of the
    other text.
    Output: float `(batch, length, 4)`, zero at padding: 1 where the other text has the
    word as it stands; in any case of its letters; a word with the same first letters;
    and the logarithm of how often its own text has the word, in any case.
    """

    FEATURES = 4

    def call(self, spellings, others):
        def alike(form, other_texts):
            one, other = spellings[:, :, form], other_texts[:, :, form]
            same = one[:, :, None] == other[:, None, :]
            return same & (one != NOTHING)[:, :, None]

        count = ops.sum(ops.cast(alike(1, spellings), "float32"), axis=2)
        features = [ops.any(alike(form, others), axis=2) for form in range(SPELLINGS)]
        # A word that nothing is like, not even itself, occurs once.
        features.append(ops.log(ops.maximum(count, 1.0)))
        features = [ops.cast(feature, self.compute_dtype) for feature in features]
        return ops.stack(features, axis=-1)

    def compute_output_shape(self, shape, other_shape):
        return (*shape[:-1], self.FEATURES)

    def compute_output_spec(self, spellings, others):
        shape = self.compute_output_shape(spellings.shape, others.shape)
        return keras.KerasTensor(shape, dtype=self.compute_dtype)
