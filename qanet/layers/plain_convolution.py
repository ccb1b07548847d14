"""The convolution that QANet's depthwise-separable one is compared with (table 5)."""

import keras
from keras import ops

from qanet.layers.convolution import DepthwiseSeparableConv1D, shifts
from qanet.layers.numerics import zero_padding


@keras.saving.register_keras_serializable(package="qanet")
class PlainConv1D(DepthwiseSeparableConv1D):
    """A convolution over positions and across channels at once.

    One product of the joined neighbours of each position. Arguments, input and output
    are those of `DepthwiseSeparableConv1D`.
    """

    def build(self, input_shape):
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.kernel_size * input_shape[-1], self.filters),
            initializer="glorot_uniform",
        )
        self.bias = self.add_weight(
            name="bias", shape=(self.filters,), initializer="zeros"
        )

    def call(self, x, mask, training=False):
        neighbours = shifts(zero_padding(x, mask), self.kernel_size)
        x = ops.concatenate(neighbours, axis=-1)
        return ops.relu(ops.matmul(x, self.kernel) + self.bias)
