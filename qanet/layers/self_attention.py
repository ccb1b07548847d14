"""Multi-head self-attention (Vaswani et al., 2017, section 3.2)."""

import keras
from keras import ops

from qanet.layers.attention import attend, join_heads
from qanet.layers.dropout import Dropout


@keras.saving.register_keras_serializable(package="qanet")
class MultiHeadSelfAttention(keras.layers.Layer):
    """Each position takes a weighted mean of all real positions, once per head.

    Args:
        heads: number of heads; divides the width.
        dropout: dropout rate of the weights.

    Input: float tensor `(batch, length, width)` and boolean mask `(batch, length)`.
    Output: float tensor `(batch, length, width)`.
    """

    def __init__(self, heads, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.heads = heads
        self.dropout = Dropout(dropout, name="dropout")

    def build(self, input_shape):
        width = input_shape[-1]
        if width % self.heads:
            raise ValueError(f"{self.heads} heads do not divide the width {width}")
        self.projection = keras.layers.Dense(
            3 * width,
            use_bias=False,
            # Glorot's bound for each of the three square matrices, not for the
            # wide one that holds them.
            kernel_initializer=keras.initializers.RandomUniform(
                -((3.0 / width) ** 0.5), (3.0 / width) ** 0.5
            ),
            name="query_key_value",
        )
        self.output_projection = keras.layers.Dense(
            width, use_bias=False, name="output"
        )
        self.projection.build(input_shape)
        self.output_projection.build(input_shape)

    def call(self, x, mask, training=False):
        batch, length, width = ops.shape(x)
        size = width // self.heads
        x = ops.reshape(self.projection(x), (batch, length, 3, self.heads, size))
        query, key, value = ops.unstack(ops.transpose(x, (2, 0, 3, 1, 4)), 3)
        mask = mask[:, None, None, :]
        x = attend(query, key, value, mask, self.dropout, training)
        return self.output_projection(join_heads(x))

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "heads": self.heads,
            "dropout": self.dropout.rate,
        }
