"""The co-attention of dynamic co-attention networks (Xiong et al., 2017, section
2.2)."""

import keras
from keras import ops

from qanet.layers.numerics import softmax_both_ways


@keras.saving.register_keras_serializable(package="qanet")
class DCNAttention(keras.layers.Layer):
    """Context words attend to the question, and to what its words attended to.

    The question is projected, Q = tanh(W Q' + b), and a trained vector, the sentinel,
    is put before each text, so that a word may attend to none. L = C Qᵀ. Each word of
    the question attends to the context, C^Q = softmax over the context (L)ᵀ C, and each
    word of the context to the question and that: C^D = softmax over the question (L)
    [Q; C^Q]. In the paper the question's sentinel is projected with its words, and an
    LSTM goes over [c; c^D]; it is left out, since the model encoder reads the output.

    Input: context `(batch, n, width)`, question `(batch, m, width)` and their boolean
    masks `(batch, n)` and `(batch, m)`.
    Output: `(batch, n, 3 * width)`, [c; c^D].
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, context_shape, *other_shapes):
        width = context_shape[-1]
        self.projection = keras.layers.Dense(
            width,
            activation="tanh",
            # Both texts come from one encoder, so like words begin alike.
            kernel_initializer=keras.initializers.Identity(gain=width**-0.5),
            name="projection",
        )
        self.projection.build(context_shape)
        self.sentinels = self.add_weight(
            name="sentinels",
            shape=(2, width),
            initializer=keras.initializers.RandomNormal(stddev=width**-0.5),
        )

    def _attend(self, context, question, context_mask, question_mask):
        """Both texts with their sentinels, and the softmax of rows and columns."""
        texts, masks = [], []
        for i, (text, mask) in enumerate(
            ((context, context_mask), (self.projection(question), question_mask))
        ):
            first = ops.zeros_like(text[:, :1]) + self.sentinels[i]
            texts.append(ops.concatenate([first, text], axis=1))
            always = ops.ones_like(mask[:, :1])
            masks.append(ops.concatenate([always, mask], axis=1))
        context, question = texts
        similarity = ops.matmul(context, ops.transpose(question, (0, 2, 1)))
        return context, question, *softmax_both_ways(similarity, *masks)

    def weights_of(self, context, question, context_mask, question_mask):
        """The softmax of the rows and that of the columns, without sentinels.

        Float `(batch, n, m)` each; their sums are what the sentinels leave.
        """
        _, _, rows, columns = self._attend(
            context, question, context_mask, question_mask
        )
        return rows[:, 1:, 1:], columns[:, 1:, 1:]

    def call(self, context, question, context_mask, question_mask):
        words, question, rows, columns = self._attend(
            context, question, context_mask, question_mask
        )
        back = ops.matmul(ops.transpose(columns, (0, 2, 1)), words)
        both = ops.concatenate([question, back], axis=-1)
        attended = ops.matmul(rows[:, 1:], both)
        return ops.concatenate([context, attended], axis=-1)

    def compute_output_shape(self, context_shape, *others):
        return (*context_shape[:-1], 3 * context_shape[-1])
