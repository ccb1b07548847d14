"""Multi-head self-attention (Vaswani et al., 2017, section 3.2)."""

import keras
from keras import ops

from qanet.layers.attention import attend, join_heads
from qanet.layers.dropout import Dropout
from qanet.layers.numerics import masked_softmax


@keras.saving.register_keras_serializable(package="qanet")
class MultiHeadSelfAttention(keras.layers.Layer):
    """Each position takes a weighted mean of all real positions, once per head.

    Args:
        heads: number of heads; divides the width.
        dropout: dropout rate of the weights.
        bias: add a trained vector to queries, keys, values and the output.

    Input: float tensor `(batch, length, width)` and boolean mask `(batch, length)`.
    Output: float tensor `(batch, length, width)`.
    """

    def __init__(self, heads, dropout=0.0, bias=False, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.heads = heads
        self.dropout = Dropout(dropout, name="dropout")
        self.bias = bias

    def build(self, input_shape):
        width = input_shape[-1]
        if width % self.heads:
            raise ValueError(f"{self.heads} heads do not divide the width {width}")
        self.projection = keras.layers.Dense(
            3 * width,
            use_bias=self.bias,
            # Glorot's bound for each of the three square matrices, not for the
            # wide one that holds them.
            kernel_initializer=keras.initializers.RandomUniform(
                -((3.0 / width) ** 0.5), (3.0 / width) ** 0.5
            ),
            name="query_key_value",
        )
        self.output_projection = keras.layers.Dense(
            width, use_bias=self.bias, name="output"
        )
        self.projection.build(input_shape)
        self.output_projection.build(input_shape)

    def call(self, x, mask, training=False):
        query, key, value = self._project(x)
        mask = mask[:, None, None, :]
        x = attend(query, key, value, mask, self.dropout, training)
        return self.output_projection(join_heads(x))

    def weights_of(self, x, mask):
        """How each position attends to each, the mean of the heads.

        Returns:
            Float tensor `(batch, length, length)`, whose rows sum to one.
        """
        query, key, _ = self._project(x)
        logits = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
        logits = logits * query.shape[-1] ** -0.5
        return ops.mean(masked_softmax(logits, mask[:, None, None, :]), axis=1)

    def _project(self, x):
        """Queries, keys and values, `(batch, heads, length, width / heads)` each."""
        batch, length, width = ops.shape(x)
        size = width // self.heads
        x = ops.reshape(self.projection(x), (batch, length, 3, self.heads, size))
        return ops.unstack(ops.transpose(x, (2, 0, 3, 1, 4)), 3)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "heads": self.heads,
            "dropout": self.dropout.rate,
            "bias": self.bias,
        }
