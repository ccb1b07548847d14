"""Span pointer (QANet, section 2.2, "Output layer")."""

import keras
from keras import ops

from qanet.layers.logits import LogitsLayer
from qanet.layers.numerics import mask_logits


@keras.saving.register_keras_serializable(package="qanet")
class SpanPointer(LogitsLayer):
    """Scores every context position as the start and as the end of the answer.

    start = w_1 · [m_0; m_1] and end = w_2 · [m_0; m_2], where m_i are the outputs of
    the model encoder's last three passes; BiDAF's are G, M and M².

    Input: three float tensors `(batch, length, width)`, which may differ in width, and
    the boolean mask `(batch, length)`.
    Output: float32 start and end logits `(batch, length)`, masked at padding.
    """

    def build(self, m0_shape, m1_shape, m2_shape):
        # A dense layer each; the bias would cancel in the softmax.
        settings = {"use_bias": False, "dtype": "float32"}
        self.start = keras.layers.Dense(1, **settings, name="start")
        self.end = keras.layers.Dense(1, **settings, name="end")
        self.start.build((*m0_shape[:-1], m0_shape[-1] + m1_shape[-1]))
        self.end.build((*m0_shape[:-1], m0_shape[-1] + m2_shape[-1]))

    def call(self, m0, m1, m2, mask):
        start = self.start(ops.concatenate([m0, m1], axis=-1))
        end = self.end(ops.concatenate([m0, m2], axis=-1))
        return (
            mask_logits(ops.squeeze(start, -1), mask),
            mask_logits(ops.squeeze(end, -1), mask),
        )

    def compute_output_shape(self, m0_shape, *others):
        return m0_shape[:-1], m0_shape[:-1]
