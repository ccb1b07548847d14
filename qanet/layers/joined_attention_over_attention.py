"""Attention-over-attention on a joined sequence."""

import keras
from keras import ops

from qanet.layers.attention_over_attention import AttentionOverAttention
from qanet.layers.join_texts import context_places, question_places
from qanet.layers.logits import LogitsLayer, with_no_answer
from qanet.layers.look_up import PADDING

# Not 0, for then its matrices would learn nothing in the first step.
INITIAL_GAIN = 0.1


@keras.saving.register_keras_serializable(package="qanet")
class JoinedAttentionOverAttention(LogitsLayer):
    """How much the question attends to each piece of the context, as a part of logits.

    For the start and for the end the context's states go through a matrix of their own,
    divided by the root of the width as in self-attention. With the question's states
    they give the attention-over-attention s of `AttentionOverAttention`. g log s is
    what is added to the logits; g begins at 0.1, so that the first logits are close to
    those of the encoder alone.

    Input: as of `JoinedPointer`.
    Output: float32, for start and end `(batch, 1 + context length)`; 0 at [CLS], which
    no attention goes to, and at padding.
    """

    def build(self, x_shape, question_shape, context_shape):
        self.projection = keras.layers.Dense(
            2 * x_shape[-1], use_bias=False, dtype="float32", name="projection"
        )
        self.projection.build(x_shape)
        self.gain = self.add_weight(
            name="gain",
            shape=(2,),
            initializer=keras.initializers.Constant(INITIAL_GAIN),
        )
        self.attention = AttentionOverAttention(name="attention")
        self.attention.build(x_shape)

    def call(self, x, question, context):
        question_states = x[:, question_places(question)] / x.shape[-1] ** 0.5
        context_states = self.projection(x[:, context_places(question, context)])
        masks = (ops.not_equal(text, PADDING) for text in (context, question))
        context_mask, question_mask = masks
        outputs = []
        for i, states in enumerate(ops.split(context_states, 2, axis=-1)):
            attention = self.attention(
                states, question_states, context_mask, question_mask
            )
            attention = ops.where(context_mask, attention, 0.0)
            # Before the context stands [CLS].
            padded = ops.pad(attention, [(0, 0), (1, 0)])
            outputs.append(self.gain[i] * padded)
        return tuple(outputs)

    def compute_output_shape(self, x_shape, question_shape, context_shape):
        shape = with_no_answer(context_shape)
        return shape, shape
