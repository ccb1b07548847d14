"""Trilinear context-query attention (QANet, section 2.2; Seo et al., 2017)."""

import keras
from keras import ops

from qanet.layers.numerics import softmax_both_ways


@keras.saving.register_keras_serializable(package="qanet")
class ContextQueryAttention(keras.layers.Layer):
    """Aligns every context word with the question and back.

    Similarity S_ij = w_c · c_i + w_q · q_j + w_m · (c_i ∘ q_j), formed from three
    small products: [c; q; c ∘ q] for all pairs is never in memory. With S_row and
    S_col its softmax over the question and over the context, A = S_row Q and
    B = S_row S_colᵀ C (the direction from question to context as in DCN, Xiong et
    al., 2017).

    Input: context `(batch, n, width)`, question `(batch, m, width)` and their boolean
    masks `(batch, n)` and `(batch, m)`.
    Output: `(batch, n, 4 * width)`, [c; a; c ∘ a; c ∘ b].
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, input_shape, *other_shapes):
        width = input_shape[-1]
        for name in ("context_weight", "question_weight"):
            weight = self.add_weight(
                name=name, shape=(width,), initializer=keras.initializers.Zeros()
            )
            setattr(self, name, weight)
        # Both texts come from one encoder, so similar words have similar vectors:
        # a scaled dot product is a better start than a random bilinear form.
        self.product_weight = self.add_weight(
            name="product_weight",
            shape=(width,),
            initializer=keras.initializers.Constant(width**-0.5),
        )

    def compute_output_shape(self, context_shape, *others):
        return (*context_shape[:-1], 4 * context_shape[-1])

    def similarity(self, context, question):
        """S, float `(batch, n, m)`."""
        similarity = ops.matmul(
            context * self.product_weight, ops.transpose(question, (0, 2, 1))
        )
        similarity = similarity + ops.sum(
            context * self.context_weight, axis=-1, keepdims=True
        )
        return similarity + ops.expand_dims(
            ops.sum(question * self.question_weight, axis=-1), 1
        )

    def weights_of(self, context, question, context_mask, question_mask):
        """S_row and S_col, `(batch, n, m)` each."""
        similarity = self.similarity(context, question)
        return softmax_both_ways(similarity, context_mask, question_mask)

    def call(self, context, question, context_mask, question_mask):
        rows, columns = self.weights_of(context, question, context_mask, question_mask)
        a = ops.matmul(rows, question)
        b = ops.matmul(rows, ops.matmul(ops.transpose(columns, (0, 2, 1)), context))
        return ops.concatenate([context, a, context * a, context * b], axis=-1)
