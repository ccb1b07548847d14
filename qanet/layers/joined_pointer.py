"""Start and end in a joined sequence (BERT: Devlin et al., 2019, section 4.2)."""

import keras
from keras import ops

from qanet.layers.join_texts import context_places
from qanet.layers.logits import LogitsLayer, with_no_answer
from qanet.layers.look_up import PADDING
from qanet.layers.numerics import mask_logits
from qanet.layers.piece_embedding import STDDEV


@keras.saving.register_keras_serializable(package="qanet")
class JoinedPointer(LogitsLayer):
    """s · x + b_s and e · x + b_e at [CLS] and at each piece of the context.

    The biases cancel in the softmax; the heads of public models have them.

    Input: float `(batch, question length + context length + 3, width)`, the encoder's
    output on what `JoinTexts` gives, and integers `(batch, question length)` and
    `(batch, context length)`, the texts' pieces.
    Output: float32 start and end logits `(batch, 1 + context length)`, masked at
    padding. The first ones, of [CLS], say that the context does not answer.
    """

    def build(self, x_shape, question_shape, context_shape):
        self.span = keras.layers.Dense(
            2,
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=STDDEV),
            dtype="float32",
            name="span",
        )
        self.span.build(x_shape)

    def call(self, x, question, context):
        context_states = x[:, context_places(question, context)]
        logits = self.span(ops.concatenate([x[:, :1], context_states], axis=1))
        real = ops.not_equal(context, PADDING)
        real = ops.concatenate([ops.ones_like(real[:, :1]), real], axis=1)
        return tuple(mask_logits(logits[:, :, i], real) for i in range(2))

    def compute_output_shape(self, x_shape, question_shape, context_shape):
        shape = with_no_answer(context_shape)
        return shape, shape
