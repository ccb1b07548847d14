"""One vector for a text (SLQA: Wang, Yan, Wu, 2018, "linear
self-alignment")."""

import keras
from keras import ops

from qanet.layers.numerics import masked_softmax


@keras.saving.register_keras_serializable(package="qanet")
class AttentionPooling(keras.layers.Layer):
    """The mean of a text's words, by the softmax of w · x_j.

    Input: float tensor `(batch, length, width)` and boolean mask `(batch, length)`.
    Output: float tensor `(batch, width)`.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, shape, *other_shapes):
        self.score = keras.layers.Dense(1, use_bias=False, name="score")
        self.score.build(shape)

    def call(self, x, mask):
        weights = masked_softmax(ops.squeeze(self.score(x), -1), mask)
        return ops.squeeze(ops.matmul(weights[:, None, :], x), 1)

    def compute_mask(self, inputs, previous_mask):
        """A vector has no padding."""
        return None

    def compute_output_shape(self, shape, *others):
        return shape[0], shape[-1]
