"""Co-attention on projections (SLQA: Wang, Yan, Wu, 2018, "Co-attention & Fusion")."""

import keras
from keras import ops

from qanet.layers.numerics import softmax_both_ways


@keras.saving.register_keras_serializable(package="qanet")
class CoAttention(keras.layers.Layer):
    """Each text attends to the other, on one similarity.

    S_ij = ReLU(W c_i) · ReLU(W q_j), one W for both texts. A word of the context takes
    the mean of the question's words by the softmax of its row, a word of the question
    that of the context's words by the softmax of its column.

    Input: context `(batch, n, width)`, question `(batch, m, width)` and their boolean
    masks `(batch, n)` and `(batch, m)`.
    Output: what the context attended to `(batch, n, width)`, and the question
    `(batch, m, width)`.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, context_shape, *other_shapes):
        self.projection = keras.layers.Dense(
            context_shape[-1], activation="relu", use_bias=False, name="projection"
        )
        self.projection.build(context_shape)

    def weights_of(self, context, question, context_mask, question_mask):
        """The softmax over the question and that over the context, `(batch, n, m)`."""
        projected = self.projection(question)
        similarity = ops.matmul(
            self.projection(context), ops.transpose(projected, (0, 2, 1))
        )
        return softmax_both_ways(similarity, context_mask, question_mask)

    def call(self, context, question, context_mask, question_mask):
        rows, columns = self.weights_of(context, question, context_mask, question_mask)
        back = ops.matmul(ops.transpose(columns, (0, 2, 1)), context)
        return ops.matmul(rows, question), back

    def compute_output_shape(self, context_shape, question_shape, *others):
        return context_shape, question_shape
