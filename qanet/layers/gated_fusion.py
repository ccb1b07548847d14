"""Fusion of what a word is with what it attended to (SLQA: Wang, Yan, Wu, 2018,
"Co-attention & Fusion")."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="qanet")
class GatedFusion(keras.layers.Layer):
    """g m + (1 - g) x with m = tanh(W_f [x; y; x ∘ y; x - y] + b_f) and the gate
    g = σ(w_g · [x; y; x ∘ y; x - y] + b_g), a number for each word.

    Input: two float tensors `(batch, length, width)`: words, and what each attended to.
    Output: float tensor of their shape.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, shape, *other_shapes):
        width = shape[-1]
        self.fused = keras.layers.Dense(width, activation="tanh", name="fused")
        self.gate = keras.layers.Dense(1, activation="sigmoid", name="gate")
        for dense in (self.fused, self.gate):
            dense.build((*shape[:-1], 4 * width))

    def call(self, x, y):
        pair = ops.concatenate([x, y, x * y, x - y], axis=-1)
        gate = self.gate(pair)
        return gate * self.fused(pair) + (1.0 - gate) * x

    def compute_output_shape(self, shape, *other_shapes):
        return shape
