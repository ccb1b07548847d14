"""Attention-over-attention (Cui et al., 2017, section 3)."""

import keras
from keras import ops

from qanet.layers.logits import LogitsLayer
from qanet.layers.numerics import mask_logits, softmax_both_ways

# Keeps the logarithm of an attention that is zero in float32 finite.
SMALLEST = 1e-30


@keras.saving.register_keras_serializable(package="qanet")
class AttentionOverAttention(LogitsLayer):
    """How much the whole question attends to each word of the context.

    M_ij = c_i · q_j. Each word j of the question attends to the context, α_j = the
    softmax of column j. How much each of them counts is attention too: the softmax of
    row i, averaged over the context's words, is β. The result is s = Σ_j β_j α_j, a
    distribution over the context's words.

    Input: context `(batch, n, width)`, question `(batch, m, width)` and their boolean
    masks `(batch, n)` and `(batch, m)`.
    Output: float32 `(batch, n)`, log s, masked at padding.
    """

    def weights_of(self, context, question, context_mask, question_mask):
        """The softmax of the rows and that of the columns, `(batch, n, m)` each."""
        similarity = ops.matmul(context, ops.transpose(question, (0, 2, 1)))
        return softmax_both_ways(similarity, context_mask, question_mask)

    def call(self, context, question, context_mask, question_mask):
        rows, columns = self.weights_of(context, question, context_mask, question_mask)
        real = ops.cast(context_mask, "float32")[:, :, None]
        total = ops.maximum(ops.sum(real, axis=1), 1.0)
        importance = ops.sum(rows * real, axis=1) / total
        attention = ops.squeeze(ops.matmul(columns, importance[:, :, None]), -1)
        return mask_logits(ops.log(ops.maximum(attention, SMALLEST)), context_mask)

    def compute_output_shape(self, context_shape, *others):
        return context_shape[:-1]
