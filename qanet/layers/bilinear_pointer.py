"""Span pointer that matches a vector of the question (DrQA: Chen et al., 2017; SLQA:
Wang, Yan, Wu, 2018)."""

import keras
from keras import ops

from qanet.layers.logits import LogitsLayer
from qanet.layers.numerics import mask_logits


@keras.saving.register_keras_serializable(package="qanet")
class BilinearPointer(LogitsLayer):
    """start_i = q W_s x_i and end_i = q W_e x_i.

    Input: context `(batch, length, width)`, question `(batch, width)` and the boolean
    mask of the context `(batch, length)`.
    Output: float32 start and end logits `(batch, length)`, masked at padding.
    """

    def build(self, context_shape, question_shape, *other_shapes):
        settings = {"use_bias": False, "dtype": "float32"}
        width = context_shape[-1]
        self.start = keras.layers.Dense(width, **settings, name="start")
        self.end = keras.layers.Dense(width, **settings, name="end")
        for dense in (self.start, self.end):
            dense.build(question_shape)

    def call(self, context, question, mask):
        def logits(dense):
            query = ops.expand_dims(dense(question), -1)
            return mask_logits(ops.squeeze(ops.matmul(context, query), -1), mask)

        return logits(self.start), logits(self.end)

    def compute_output_shape(self, context_shape, *others):
        return context_shape[:-1], context_shape[:-1]
