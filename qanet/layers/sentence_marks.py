"""The marks of a sentence's beginning and end (as in allenai/bilm-tf)."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="qanet")
class SentenceMarks(keras.layers.Layer):
    """Puts one word before each sentence and one after its last.

    Args:
        begin, end: the characters of these two words, as many as a word has places.

    Input: integer tensor `(batch, length, places)`, the characters of each word; 0 at
    padding, which comes last.
    Output: integer tensor `(batch, length + 2, places)`, and where it is not padding,
    boolean `(batch, length + 2)`.
    """

    def __init__(self, begin, end, **kwargs):
        super().__init__(**kwargs)
        self.begin = list(begin)
        self.end = list(end)

    def call(self, characters):
        words = ops.any(ops.not_equal(characters, 0), axis=2)
        lengths = ops.sum(ops.cast(words, "int32"), axis=1, keepdims=True)
        begin, end = (
            ops.reshape(ops.cast(mark, characters.dtype), (1, 1, -1))
            for mark in (self.begin, self.end)
        )
        padded = ops.pad(characters, ((0, 0), (1, 1), (0, 0)))
        places = ops.arange(ops.shape(padded)[1], dtype="int32")
        marked = ops.where(places[:, None] == 0, begin, padded)
        last = ops.expand_dims(places == lengths + 1, -1)
        return ops.where(last, end, marked), places < lengths + 2

    def compute_output_spec(self, characters):
        batch, length, size = characters.shape
        length = None if length is None else length + 2
        return (
            keras.KerasTensor((batch, length, size), dtype=characters.dtype),
            keras.KerasTensor((batch, length), dtype="bool"),
        )

    def get_config(self):
        return {**super().get_config(), "begin": self.begin, "end": self.end}
