"""Tests of qanet.layers.sampled_softmax_loss."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.sampled_softmax_loss import (
    SampledSoftmaxLoss,
    sampled_softmax_loss,
    softmax_loss,
)
from qanet.pretraining.samples import draw_sample, log_expected_counts

pytestmark = pytest.mark.usefixtures("fixed_seed")

VOCABULARY, WIDTH = 12, 4


@pytest.fixture
def given(rng):
    """States, right words, and the weights."""
    return (
        rng.normal(size=(2, 3, WIDTH)).astype("float32"),
        rng.integers(0, VOCABULARY, (2, 3)).astype("int32"),
        rng.normal(size=(VOCABULARY, WIDTH)).astype("float32"),
        rng.normal(size=VOCABULARY).astype("float32"),
    )


def numpy_loss(states, words, kernel, bias):
    logits = states.astype("float64") @ kernel.T.astype("float64") + bias
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    return -np.log(np.take_along_axis(p, words[..., None], -1)[..., 0])


def numpy_sampled_loss(states, words, counts, sample, sample_counts, kernel, bias):
    """One state after the other, the right word among those drawn and not right."""
    result = np.zeros(words.shape)
    for place in np.ndindex(*words.shape):
        right = words[place]
        wrong = [k for k in range(len(sample)) if sample[k] != right]
        chosen = [right, *sample[wrong]]
        expected = np.array([counts[place], *sample_counts[wrong]])
        logits = kernel[chosen].astype("float64") @ states[place] + bias[chosen]
        powers = np.exp(logits) / expected
        result[place] = -np.log(powers[0] / powers.sum())
    return result


def test_the_whole_softmax_against_numpy(given):
    found = ops.convert_to_numpy(softmax_loss(*given))
    np.testing.assert_allclose(found, numpy_loss(*given), rtol=1e-5, atol=1e-5)


def test_a_sample_against_numpy(given, rng):
    states, words, kernel, bias = given
    sample = np.array([5, words[0, 0], 0, words[1, 2], 11], "int32")
    counts = rng.uniform(0.1, 1.0, words.shape)
    sample_counts = rng.uniform(0.1, 1.0, len(sample))
    expected = numpy_sampled_loss(
        states, words, counts, sample, sample_counts, kernel, bias
    )
    logs = [np.log(x).astype("float32") for x in (counts, sample_counts)]
    found = sampled_softmax_loss(states, words, logs[0], sample, logs[1], kernel, bias)
    np.testing.assert_allclose(ops.convert_to_numpy(found), expected, rtol=1e-4)


def mean_of_samples(given, count, times):
    """The sampled loss, the mean of many samples of the vocabulary."""
    states, words, kernel, bias = given
    random = np.random.default_rng(1)
    total = np.zeros(words.shape)
    for _ in range(times):
        sample, draws = draw_sample(VOCABULARY, count, random)
        counts, sample_counts = (
            np.exp(log_expected_counts(numbers, VOCABULARY, draws).astype("float64"))
            for numbers in (words, sample)
        )
        total += numpy_sampled_loss(
            states, words, counts, sample, sample_counts, kernel, bias
        )
    return total / times


def test_larger_samples_come_closer_to_the_whole(given):
    whole = numpy_loss(*given)
    errors = [
        np.abs(mean_of_samples(given, count, 200) - whole).mean() for count in (2, 5, 9)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 2 * errors[2]
    # All words are no sample any more.
    np.testing.assert_allclose(mean_of_samples(given, VOCABULARY, 1), whole, rtol=1e-6)


def test_a_sample_of_all_words_is_the_whole(given):
    states, words, kernel, bias = given
    sample, draws = draw_sample(VOCABULARY, VOCABULARY, np.random.default_rng(0))
    logs = [log_expected_counts(x, VOCABULARY, draws) for x in (words, sample)]
    found = sampled_softmax_loss(states, words, logs[0], sample, logs[1], kernel, bias)
    np.testing.assert_allclose(
        ops.convert_to_numpy(found), numpy_loss(*given), rtol=1e-4, atol=1e-5
    )


@pytest.fixture
def layer_inputs(given):
    """What the layer is called with: two texts, a sample of four in two shares."""
    states, words, _, _ = given
    counts = np.full(words.shape, np.log(0.5), "float32")
    sample = np.array([[1, 7], [3, 0]], "int32")
    sample_counts = np.log([[0.3, 0.4], [0.6, 0.9]]).astype("float32")
    return states, words, counts, sample, sample_counts


def test_the_layer_takes_a_sample_in_training_alone(layer_inputs, randomise):
    states, words, counts, sample, sample_counts = layer_inputs
    layer = SampledSoftmaxLoss(VOCABULARY)
    layer(*layer_inputs)
    weights = randomise(layer)
    kernel, bias = weights["kernel"], weights["bias"]
    found = ops.convert_to_numpy(layer(*layer_inputs))
    np.testing.assert_allclose(
        found, numpy_loss(states, words, kernel, bias), rtol=1e-4
    )
    found = ops.convert_to_numpy(layer(*layer_inputs, training=True))
    expected = numpy_sampled_loss(
        states,
        words,
        np.exp(counts),
        sample.ravel(),
        np.exp(sample_counts).ravel(),
        kernel,
        bias,
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert layer.compute_output_shape(states.shape) == words.shape


@pytest.mark.parametrize("training", [False, True])
def test_gradients_against_numpy(
    layer_inputs, randomise, check_gradients, rng, training
):
    states, words, counts, sample, sample_counts = layer_inputs
    layer = SampledSoftmaxLoss(VOCABULARY)
    layer(*layer_inputs)
    weights = randomise(layer)

    def function(x, weights):
        kernel, bias = weights["kernel"], weights["bias"]
        if not training:
            logits = x @ kernel.T + bias
            total = np.log(np.exp(logits).sum(axis=-1))
            return total - np.take_along_axis(logits, words[..., None], -1)[..., 0]
        return numpy_sampled_loss(
            x,
            words,
            np.exp(counts),
            sample.ravel(),
            np.exp(sample_counts).ravel(),
            kernel,
            bias,
        )

    upstream = rng.normal(size=words.shape).astype("float32")
    check_gradients(
        layer,
        function,
        states,
        weights,
        upstream,
        words=words,
        log_counts=counts,
        sample=sample,
        sample_log_counts=sample_counts,
        training=training,
    )


def test_round_trip(layer_inputs, check_round_trip):
    check_round_trip(SampledSoftmaxLoss(VOCABULARY), *layer_inputs)
