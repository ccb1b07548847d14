"""The loss of a softmax over many words, whole or of a sample (ELMo: Peters et al.,
2018, section 3.1; Jean et al., 2015)."""

import keras
from keras import ops

from qanet.layers.look_up import look_up
from qanet.layers.numerics import mask_logits


@keras.saving.register_keras_serializable(package="qanet")
class SampledSoftmaxLoss(keras.layers.Layer):
    """-log p of the target words: in training of a sample, else of all words.

    Args:
        words: size of the vocabulary.

    Input: float tensor `(batch, length, width)`, states; int32 `(batch, length)`, the
    target words; float `(batch, length)`, the logarithms of their expected counts in a
    sample; int32 `(batch, share)`, the sample, in as many rows as there are texts;
    float `(batch, share)`, the logarithms of its expected counts.
    Output: float tensor `(batch, length)`.
    """

    def __init__(self, words, **kwargs):
        super().__init__(**kwargs)
        self.words = words

    def build(self, states_shape, *other_shapes):
        width = states_shape[-1]
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.words, width),
            initializer=keras.initializers.RandomNormal(stddev=width**-0.5),
        )
        self.bias = self.add_weight(
            name="bias", shape=(self.words,), initializer="zeros"
        )

    def call(
        self, states, words, log_counts, sample, sample_log_counts, training=False
    ):
        kernel, bias = map(ops.convert_to_tensor, (self.kernel, self.bias))
        if not training:
            return softmax_loss(states, words, kernel, bias)
        sample, sample_log_counts = (
            ops.reshape(x, (-1,)) for x in (sample, sample_log_counts)
        )
        return sampled_softmax_loss(
            states, words, log_counts, sample, sample_log_counts, kernel, bias
        )

    def compute_output_shape(self, states_shape, *other_shapes):
        return states_shape[:-1]

    def get_config(self):
        return {**super().get_config(), "words": self.words}


def softmax_loss(states, words, kernel, bias):
    """-log p of words under the softmax of `kernel @ state + bias`.

    Args:
        states: float `(..., width)`.
        words: int32 `(...)`.
        kernel, bias: float `(vocabulary, width)` and `(vocabulary,)`.

    Returns:
        Float `(...)`.
    """
    logits = ops.matmul(states, ops.transpose(kernel)) + bias
    return ops.logsumexp(logits, axis=-1) - _logits(states, words, kernel, bias)


def sampled_softmax_loss(
    states, words, log_counts, sample, sample_log_counts, kernel, bias
):
    """The same with a sample of the vocabulary in the place of all of it (sampled
    softmax: Jean et al., 2015).

    From each logit the logarithm of the word's expected count in a sample is taken.
    Where the sample holds the target word, it is masked among the wrong ones.

    Args:
        states, words, kernel, bias: as for `softmax_loss`.
        log_counts: float, of the shape of `words`.
        sample: int32 `(sampled,)`, words that differ from one another.
        sample_log_counts: float `(sampled,)`.

    Returns:
        Float of the shape of `words`.
    """
    right = _logits(states, words, kernel, bias) - log_counts
    others = ops.matmul(states, ops.transpose(look_up(kernel, sample)))
    others = others + (look_up(bias, sample) - sample_log_counts)
    others = mask_logits(others, ops.not_equal(ops.expand_dims(words, -1), sample))
    return ops.softplus(ops.logsumexp(others, axis=-1) - right)


def _logits(states, words, kernel, bias):
    """The logit of one word a state."""
    return ops.sum(states * look_up(kernel, words), -1) + look_up(bias, words)
