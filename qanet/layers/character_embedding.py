"""A word's vector from its characters (QANet, section 2.2, "Input Embedding Layer")."""

import keras
from keras import ops

from qanet.layers.look_up import PADDING, STDDEV, look_up_small
from qanet.layers.numerics import MASKED_LOGIT


@keras.saving.register_keras_serializable(package="qanet")
class CharacterEmbedding(keras.layers.Layer):
    """One vector a word from its characters: embed, convolve, take the maximum.

    The paper's text takes the maximum of the character vectors themselves
    (`filters=0`); most implementations convolve first. The
    convolution never runs across words, and padding takes part in neither the
    convolution nor the maximum.

    The convolution is computed as a sum of look-ups: a character's vector times one
    column of the kernel depends on the character alone, so the products are formed
    once per character of the alphabet instead of once per character of the text.

    Args:
        characters: size of the alphabet, padding and unknown included.
        width: size of a character vector.
        filters: size of the output; 0 takes the maximum of the character vectors.
        kernel_size: characters that a filter sees.

    Input: integer tensor `(batch, length, characters_per_word)`.
    Output: float tensor `(batch, length, filters or width)`.
    """

    def __init__(
        self,
        characters,
        width,
        filters=0,
        kernel_size=5,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.characters = characters
        self.width = width
        self.filters = filters
        self.kernel_size = kernel_size

    def build(self, input_shape):
        self.table = self.add_weight(
            name="table",
            shape=(self.characters, self.width),
            initializer=keras.initializers.RandomNormal(stddev=STDDEV),
        )
        if self.filters:
            self.kernel = self.add_weight(
                name="kernel",
                shape=(self.kernel_size, self.width, self.filters),
                initializer="glorot_uniform",
            )
            # The largest of several normal variables lies about 1.3 deviations above
            # their mean. Starting there leaves what tells words apart. The variance of
            # a convolution's output, by that of table and kernel (Glorot's):
            variance = STDDEV**2 * 2 * self.width / (self.width + self.filters)
            self.bias = self.add_weight(
                name="bias",
                shape=(self.filters,),
                initializer=keras.initializers.Constant(-1.3 * variance**0.5),
            )

    def call(self, characters):
        table = ops.convert_to_tensor(self.table)
        if self.filters:
            x = ops.max(self._convolve(table, characters), axis=2) + self.bias
        else:
            x = ops.max(look_up_small(self._lowest_at_padding(table), characters), 2)
        # A word without characters (padding) has no maximum.
        real = ops.any(characters != PADDING, axis=2, keepdims=True)
        return ops.where(real, x, ops.zeros((), dtype=x.dtype))

    def _convolve(self, table, characters):
        size = ops.shape(characters)[2]
        known = ops.cast(ops.arange(self.characters) != PADDING, table.dtype)
        table = table * ops.expand_dims(known, -1)
        before = (self.kernel_size - 1) // 2
        padding = (before, self.kernel_size - 1 - before)
        padded = ops.pad(characters, ((0, 0), (0, 0), padding))
        x = 0.0
        for column in range(self.kernel_size):
            products = ops.matmul(table, self.kernel[column])
            # A window whose centre is padding is never the maximum.
            if column == before:
                products = self._lowest_at_padding(products)
            x = x + look_up_small(products, padded[:, :, column : column + size])
        return x

    def _lowest_at_padding(self, table):
        """A table whose row of padding is never a maximum."""
        real = ops.expand_dims(ops.arange(self.characters) != PADDING, -1)
        return ops.where(real, table, ops.cast(MASKED_LOGIT, table.dtype))

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.filters or self.width)

    def get_config(self):
        return {
            **super().get_config(),
            "characters": self.characters,
            "width": self.width,
            "filters": self.filters,
            "kernel_size": self.kernel_size,
        }
