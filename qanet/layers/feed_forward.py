"""Position-wise feed-forward network (Vaswani et al., 2017, section 3.3)."""

import keras
from keras import ops


def gelu(x):
    """x Φ(x), Φ that of the normal distribution (Hendrycks and Gimpel, 2016).

    Keras' own computes erfc, which ONNX does not have.
    """
    return 0.5 * x * (1.0 + ops.erf(x * 0.5**0.5))


ACTIVATIONS = {"relu": ops.relu, "gelu": gelu}


@keras.saving.register_keras_serializable(package="qanet")
class FeedForward(keras.layers.Layer):
    """activation(x W_1 + b_1) W_2 + b_2, at each position alone.

    Args:
        inner: size of the hidden layer.
        activation: that of the hidden layer, one of `ACTIVATIONS`.

    Input and output: float tensor `(batch, length, width)`. The mask is not needed;
    it is accepted so that all sub-layers are called alike.
    """

    def __init__(self, inner, activation="relu", **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.inner = inner
        self.activation = activation

    def build(self, input_shape):
        self.expand = keras.layers.Dense(
            self.inner, activation=ACTIVATIONS[self.activation], name="expand"
        )
        self.contract = keras.layers.Dense(input_shape[-1], name="contract")
        self.expand.build(input_shape)
        self.contract.build((*input_shape[:-1], self.inner))

    def call(self, x, mask=None, training=False):
        return self.contract(self.expand(x))

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "inner": self.inner,
            "activation": self.activation,
        }
