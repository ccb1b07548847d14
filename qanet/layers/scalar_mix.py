"""The layers of a language model as one vector a word (ELMo: Peters et al., 2018,
section 3.2, equation 1)."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="qanet")
class ScalarMix(keras.layers.Layer):
    """γ Σ_j s_j h_j, where s is the softmax of trained numbers, one a layer.

    It starts as the mean of the layers.

    Input: float tensor `(batch, length, layers, width)`.
    Output: float tensor `(batch, length, width)`.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, input_shape):
        self.scalars = self.add_weight(
            name="scalars", shape=(input_shape[2],), initializer="zeros"
        )
        self.gamma = self.add_weight(name="gamma", shape=(), initializer="ones")

    def call(self, x):
        shares = ops.softmax(ops.cast(self.scalars, "float32"))
        shares = ops.cast(shares, x.dtype) * ops.cast(self.gamma, x.dtype)
        return ops.sum(x * ops.expand_dims(shares, -1), axis=2)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:2], input_shape[3])
