"""From attention to places to attention to words (Kadlec et al., 2016; Cui et al.,
2017, section 3)."""

import keras
from keras import ops

from qanet.layers.logits import LogitsLayer
from qanet.layers.look_up import PADDING, UNKNOWN
from qanet.layers.numerics import MASKED_LOGIT, mask_logits

# The logit of a word where it stands again: no answer, and yet no padding.
REPEATED_LOGIT = MASKED_LOGIT / 3


@keras.saving.register_keras_serializable(package="qanet")
class AttentionSum(LogitsLayer):
    """Adds up what the places of a word received, at the first of them.

    Places hold one word where row and characters are the same; a word without a row
    and with an unknown character is like no other, as in `Spelling`. The softmax of the
    output is the distribution over the words of the text.

    Input: float32 `(batch, length)`, the logarithm of a distribution over the places;
    `words`, integers `(batch, length)`, and `characters`, integers
    `(batch, length, characters_per_word)`.
    Output: float32 `(batch, length)`, the logarithm of the sum where a word stands
    first, elsewhere numbers whose exponential is zero.
    """

    def call(self, logits, words, characters):
        same = ops.logical_and(
            words[:, :, None] == words[:, None, :],
            ops.all(characters[:, :, None] == characters[:, None], axis=-1),
        )
        places = ops.arange(ops.shape(words)[1], dtype="int32")
        known = (words != UNKNOWN) | ops.all(characters != UNKNOWN, axis=-1)
        itself = places[None, :, None] == places[None, None, :]
        same = ops.logical_and(same, known[:, :, None] | itself)
        real = words != PADDING
        same = ops.logical_and(same, real[:, None, :])
        # Of logarithms: sums of the probabilities themselves would underflow.
        sums = ops.logsumexp(mask_logits(logits[:, None, :], same), axis=2)
        earlier = places[None, :] < places[:, None]
        again = ops.any(ops.logical_and(same, earlier[None]), axis=2)
        return mask_logits(ops.where(again, REPEATED_LOGIT, sums), real)

    def compute_output_shape(self, logits_shape, *others):
        return logits_shape
