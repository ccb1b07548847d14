"""Span pointer (QANet, section 2.2, "Output layer")."""

import keras
from keras import ops

from qanet.layers.numerics import mask_logits


@keras.saving.register_keras_serializable(package="qanet")
class SpanPointer(keras.layers.Layer):
    """Scores every context position as the start and as the end of the answer.

    start = w_1 · [m_0; m_1] and end = w_2 · [m_0; m_2], where m_i is the output of
    pass i of the model encoder.

    Input: three float tensors `(batch, length, width)` and the boolean mask
    `(batch, length)`.
    Output: float32 start and end logits `(batch, length)`, masked at padding.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, input_shape, *other_shapes):
        # A dense layer each; the bias would cancel in the softmax. In single precision:
        # bfloat16 tells logits near 10 apart by sixteenths only.
        settings = {"use_bias": False, "dtype": "float32"}
        self.start = keras.layers.Dense(1, **settings, name="start")
        self.end = keras.layers.Dense(1, **settings, name="end")
        pair_shape = (*input_shape[:-1], 2 * input_shape[-1])
        self.start.build(pair_shape)
        self.end.build(pair_shape)

    def call(self, m0, m1, m2, mask):
        start = self.start(ops.concatenate([m0, m1], axis=-1))
        end = self.end(ops.concatenate([m0, m2], axis=-1))
        return (
            mask_logits(ops.squeeze(start, -1), mask),
            mask_logits(ops.squeeze(end, -1), mask),
        )

    def compute_mask(self, inputs, previous_mask):
        """No mask goes on with the logits: Keras would weight the loss by it."""
        return None

    def compute_output_shape(self, input_shape, *others):
        return input_shape[:-1], input_shape[:-1]
