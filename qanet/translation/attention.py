"""Multi-head attention of one sequence to another (Vaswani et al., 2017, section 3.2).

Keys and values are made apart from the attention itself, so that a decoder computes
those of a finished prefix once.
"""

import keras
from keras import ops

from qanet.layers.numerics import masked_softmax


class Attention(keras.layers.Layer):
    """Each position takes a weighted mean of another sequence's, once per head.

    Args:
        width: features of both sequences and of the output.
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
        return self._split(self.key_projection(x)), self._split(
            self.value_projection(x)
        )

    def call(self, x, keys, values, mask):
        """Attends.

        Args:
            x: float tensor `(batch, queries, width)`.
            keys, values: as `keys_and_values` gives them.
            mask: boolean tensor that broadcasts to `(batch, heads, queries, keys)`,
                true where a query may look.

        Returns:
            Float tensor of the shape of `x`.
        """
        query = self._split(self.query_projection(x))
        query = query * (query.shape[-1] ** -0.5)
        logits = ops.matmul(query, ops.transpose(keys, (0, 1, 3, 2)))
        x = ops.matmul(masked_softmax(logits, mask), values)
        x = ops.transpose(x, (0, 2, 1, 3))
        batch, length = ops.shape(x)[:2]
        x = ops.reshape(x, (batch, length, x.shape[-2] * x.shape[-1]))
        return self.output_projection(x)

    def _split(self, x):
        """Heads before positions."""
        batch, length = ops.shape(x)[:2]
        x = ops.reshape(x, (batch, length, self.heads, x.shape[-1] // self.heads))
        return ops.transpose(x, (0, 2, 1, 3))
