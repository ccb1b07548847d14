"""Multi-head attention to another sequence (Vaswani et al., 2017, section 3.2)."""

import keras
from keras import ops

from qanet.layers.numerics import mask_logits


def attend(query, keys, values, mask, dropout=None, training=False):
    """softmax(q kᵀ / √size) v, once per head.

    Args:
        query: float tensor `(batch, heads, queries, size)`.
        keys, values: float tensors `(batch, heads, keys, size)`.
        mask: boolean tensor that broadcasts to `(batch, heads, queries, keys)`, true
            where a query may look.
        dropout: a layer that drops weights.
        training: whether it does.

    Returns:
        Float tensor of the shape of `query`.
    """
    query = query * (query.shape[-1] ** -0.5)
    logits = ops.matmul(query, ops.transpose(keys, (0, 1, 3, 2)))
    logits = mask_logits(logits, mask)
    # The shift cancels, so its gradient is zero and need not be formed.
    highest = ops.stop_gradient(ops.max(logits, axis=-1, keepdims=True))
    weights = ops.exp(logits - highest)
    total = ops.sum(weights, axis=-1, keepdims=True)
    if dropout:
        weights = dropout(weights, training=training)
    # Normalised after the product with the values: that is one pass less over the
    # (queries, keys) weights than a softmax.
    x = ops.matmul(ops.cast(weights, values.dtype), values)
    return ops.cast(ops.divide(x, total), values.dtype)


def split_heads(x, heads):
    """From `(batch, length, width)` to `(batch, heads, length, width / heads)`."""
    batch, length = ops.shape(x)[:2]
    x = ops.reshape(x, (batch, length, heads, x.shape[-1] // heads))
    return ops.transpose(x, (0, 2, 1, 3))


def join_heads(x):
    """Reverses `split_heads`."""
    batch, heads, length, size = ops.shape(x)
    return ops.reshape(ops.transpose(x, (0, 2, 1, 3)), (batch, length, heads * size))


class MultiHeadAttention(keras.layers.Layer):
    """Each position takes a weighted mean of another sequence's, once per head.

    Keys and values are made apart from the attention itself, so that a decoder computes
    those of a finished prefix once.

    Args:
        width: size of the vectors of both sequences and of the output.
        heads: number of heads; divides the width.
    """

    def __init__(self, width, heads, **kwargs):
        super().__init__(**kwargs)
        self.heads = heads
        names = ("query", "key", "value", "output")
        for name in names:
            dense = keras.layers.Dense(width, use_bias=False, name=name)
            dense.build((None, None, width))
            setattr(self, f"{name}_projection", dense)
        self.built = True

    def keys_and_values(self, x):
        """What can be attended to.

        Args:
            x: float tensor `(batch, length, width)`.

        Returns:
            Two float tensors `(batch, heads, length, width / heads)`.
        """
        keys, values = self.key_projection(x), self.value_projection(x)
        return split_heads(keys, self.heads), split_heads(values, self.heads)

    def call(self, x, keys, values, mask):
        """Attends.

        Args:
            x: float tensor `(batch, queries, width)`.
            keys, values: as `keys_and_values` gives them.
            mask: as of `attend`.

        Returns:
            Float tensor of the shape of `x`.
        """
        query = split_heads(self.query_projection(x), self.heads)
        return self.output_projection(join_heads(attend(query, keys, values, mask)))
