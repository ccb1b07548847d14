"""Depthwise-separable convolution (Chollet, 2017; QANet, section 2.2)."""

import keras
from keras import ops

from qanet.layers.numerics import with_gradient, zero_padding


def shifts(x, size, mirrored=False):
    """What each tap of a kernel meets at each position; zeros beyond the ends.

    Args:
        x: float tensor `(batch, length, width)`.
        size: taps of the kernel; with an even number there is one more after a position
            than before it.
        mirrored: one more before it.

    Returns:
        A tensor of the shape of `x` for each tap.
    """
    length = ops.shape(x)[1]
    ends = (size - 1) // 2, size - 1 - (size - 1) // 2
    x = ops.pad(x, ((0, 0), ends[::-1] if mirrored else ends, (0, 0)))
    return [x[:, shift : shift + length] for shift in range(size)]


def depthwise_convolution(x, kernel):
    """Convolves each feature with its own kernel, written as shift, multiply and add.

    That is bound by memory and fuses into one loop, where the libraries' grouped
    convolutions do not. So does the gradient to `x`. The gradient to the kernel is a
    sum over all positions for each tap; compilers make a slow scalar loop of such a
    sum fused with its product, so it is formed as a product with ones, which they
    never fuse (a third of the time of the whole residual on a CPU).

    Args:
        x: float tensor `(batch, length, width)`, zero at padding.
        kernel: float tensor `(kernel_size, width)`.

    Returns:
        Float tensor of the shape of `x`, and its gradient, see `with_gradient`.
    """
    batch, length, _ = ops.shape(x)
    size = kernel.shape[0]
    shifted = shifts(x, size)
    result = sum(shifted[tap] * kernel[tap] for tap in range(size))

    def gradient(upstream):
        mirrored = shifts(upstream, size, mirrored=True)
        to_x = sum(mirrored[tap] * kernel[size - 1 - tap] for tap in range(size))
        ones = ops.ones((batch, 1, length), dtype=x.dtype)
        to_kernel = ops.stack(
            [
                ops.sum(ops.matmul(ones, shifted[tap] * upstream), axis=(0, 1))
                for tap in range(size)
            ]
        )
        return to_x, to_kernel

    return result, gradient


@keras.saving.register_keras_serializable(package="qanet")
class DepthwiseSeparableConv1D(keras.layers.Layer):
    """A convolution over positions per channel, a product across channels, a ReLU.

    Args:
        filters: size of the output vectors.
        kernel_size: positions that a filter sees; the output keeps the length.

    Input: float tensor `(batch, length, width)` and boolean mask `(batch, length)`;
    padding counts as zero, so it never leaks into real positions.
    Output: float tensor `(batch, length, filters)`.
    """

    def __init__(self, filters, kernel_size, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.filters = filters
        self.kernel_size = kernel_size

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

    def call(self, x, mask, training=None):
        kernel = self.depthwise[...]  # A tensor, which a custom gradient needs.
        convolve = with_gradient(depthwise_convolution, training)
        x = convolve(zero_padding(x, mask), kernel)
        return ops.relu(ops.matmul(x, self.pointwise) + self.bias)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.filters)

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
        }
