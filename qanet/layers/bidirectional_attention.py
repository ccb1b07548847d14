"""Attention flow in both directions (BiDAF: Seo et al., 2017, section 2,
layer 4)."""

import keras
from keras import ops

from qanet.layers.context_query_attention import ContextQueryAttention
from qanet.layers.numerics import mask_logits, masked_softmax


@keras.saving.register_keras_serializable(package="qanet")
class BidirectionalAttention(ContextQueryAttention):
    """Context-to-query and query-to-context attention on one similarity.

    S is that of `ContextQueryAttention`. Each context word attends to the question,
    ũ_t = Σ_j softmax_j(S_tj) u_j; and those context words that are like any word of the
    question are summed up, h̃ = Σ_t softmax_t(max_j S_tj) h_t, the same for all t.

    Input: context `(batch, n, width)`, question `(batch, m, width)` and their boolean
    masks `(batch, n)` and `(batch, m)`.
    Output: `(batch, n, 4 * width)`, [h; ũ; h ∘ ũ; h ∘ h̃].
    """

    def call(self, context, question, context_mask, question_mask):
        similarity = self.similarity(context, question)
        pairs = question_mask[:, None, :]
        rows = masked_softmax(similarity, pairs, axis=2)
        attended = ops.matmul(rows, question)
        likest = ops.max(mask_logits(similarity, pairs), axis=2)
        weights = masked_softmax(likest, context_mask)
        weights = ops.cast(weights, context.dtype)
        summed = ops.matmul(weights[:, None, :], context)
        return ops.concatenate(
            [context, attended, context * attended, context * summed], axis=-1
        )
