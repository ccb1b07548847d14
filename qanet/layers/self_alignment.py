"""Alignment of a text with itself (SLQA: Wang, Yan, Wu, 2018, "Self-attention &
Fusion")."""

import keras
from keras import ops

from qanet.layers.numerics import masked_softmax


@keras.saving.register_keras_serializable(package="qanet")
class BilinearSelfAlignment(keras.layers.Layer):
    """Each word takes the mean of all, by the softmax of x_i W x_j.

    Input: float tensor `(batch, length, width)` and boolean mask `(batch, length)`.
    Output: float tensor of the same shape.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, shape, *other_shapes):
        self.bilinear = keras.layers.Dense(shape[-1], use_bias=False, name="bilinear")
        self.bilinear.build(shape)

    def call(self, x, mask):
        similarity = ops.matmul(self.bilinear(x), ops.transpose(x, (0, 2, 1)))
        return ops.matmul(masked_softmax(similarity, mask[:, None, :]), x)

    def compute_output_shape(self, shape, *others):
        return shape
