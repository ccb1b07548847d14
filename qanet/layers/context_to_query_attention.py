"""Attention from context to question alone (QANet, section 2.2; Seo et al., 2017)."""

import keras
from keras import ops

from qanet.layers.context_query_attention import ContextQueryAttention


@keras.saving.register_keras_serializable(package="qanet")
class ContextToQueryAttention(ContextQueryAttention):
    """A = S_row Q of `ContextQueryAttention`, without the way back.

    Input: as there.
    Output: `(batch, n, 3 * width)`, [c; a; c ∘ a].
    """

    def call(self, context, question, context_mask, question_mask):
        rows, _ = self.weights_of(context, question, context_mask, question_mask)
        a = ops.matmul(rows, question)
        return ops.concatenate([context, a, context * a], axis=-1)

    def compute_output_shape(self, context_shape, *others):
        return (*context_shape[:-1], 3 * context_shape[-1])
