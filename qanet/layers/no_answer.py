"""A logit for "the context does not answer" (Levy et al., 2017)."""

import keras
from keras import ops

from qanet.layers.logits import with_no_answer


@keras.saving.register_keras_serializable(package="qanet")
class NoAnswerLogit(keras.layers.Layer):
    """Puts one trained logit before those of the context's tokens.

    Start and end share it: the tokens have to outweigh it. What it makes the
    probability of no answer, `qanet.decoding.rank_answers` tells.

    Input: float logits `(batch, length)`.
    Output: logits `(batch, 1 + length)`.
    """

    def build(self, input_shape):
        self.logit = self.add_weight((1,), initializer="zeros", name="logit")

    def call(self, logits):
        logit = ops.broadcast_to(self.logit, (ops.shape(logits)[0], 1))
        return ops.concatenate([logit, logits], axis=-1)

    def compute_output_shape(self, input_shape):
        return with_no_answer(input_shape)
