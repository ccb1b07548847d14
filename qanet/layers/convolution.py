"""Depthwise-separable convolution (Chollet, 2017; QANet, section 2.2)."""

import keras
from keras import ops

from qanet.layers.numerics import zero_padding


@keras.saving.register_keras_serializable(package="qanet")
class DepthwiseSeparableConv1D(keras.layers.Layer):
    """A convolution over positions per feature, then a product across features.

    The depthwise part is written as shift, multiply and add: it is bound by memory
    and fuses into one loop, where the libraries' grouped convolutions do not.

    Args:
        filters: size of the output vectors.
        kernel_size: positions that a filter sees; the output keeps the length.
        activation: name of the activation after the product.

    Input: float tensor `(batch, length, width)` and boolean mask `(batch, length)`;
    padding counts as zero, so it never leaks into real positions.
    Output: float tensor `(batch, length, filters)`.
    """

    def __init__(self, filters, kernel_size, activation="relu", **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.filters = filters
        self.kernel_size = kernel_size
        self.activation = keras.activations.get(activation)

    def build(self, input_shape):
        width = input_shape[-1]
        self.depthwise = self.add_weight(
            name="depthwise_kernel",
            shape=(self.kernel_size, width),
            # Each output sums kernel_size products.
            initializer=keras.initializers.RandomUniform(
                -((3.0 / self.kernel_size) ** 0.5), (3.0 / self.kernel_size) ** 0.5
            ),
        )
        self.pointwise = self.add_weight(
            name="pointwise_kernel",
            shape=(width, self.filters),
            initializer="glorot_uniform",
        )
        self.bias = self.add_weight(
            name="bias", shape=(self.filters,), initializer="zeros"
        )

    def call(self, x, mask):
        length = ops.shape(x)[1]
        before = (self.kernel_size - 1) // 2
        padding = ((0, 0), (before, self.kernel_size - 1 - before), (0, 0))
        padded = ops.pad(zero_padding(x, mask), padding)
        x = sum(
            padded[:, shift : shift + length] * self.depthwise[shift]
            for shift in range(self.kernel_size)
        )
        return self.activation(ops.matmul(x, self.pointwise) + self.bias)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.filters)

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "activation": keras.activations.serialize(self.activation),
        }
