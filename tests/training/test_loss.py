"""Tests of qanet.training.loss."""

import keras
import numpy as np
import pytest
from keras import ops

from qanet.layers.numerics import MASKED_LOGIT
from qanet.training.loss import smoothed_cross_entropy, span_loss

# One marked token; one marked and two other places; padding at the end.
WEIGHTS = np.array(
    [[0, 1, 0, 0, 0], [0.125, 0, 0.75, 0.125, 0], [0, 0, 0.5, 0.5, 0]], "float32"
)


@pytest.fixture
def logits(rng):
    x = rng.normal(scale=3.0, size=WEIGHTS.shape).astype("float32")
    x[1:, -1] = MASKED_LOGIT
    return x


def softmax(x):
    powers = np.exp(x.astype("float64") - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def numpy_gradient(logits):
    """p_i - w_i p_i / Σ_j w_j p_j."""
    p = softmax(logits)
    return p - WEIGHTS * p / (WEIGHTS * p).sum(axis=1, keepdims=True)


def test_against_numpy(logits):
    loss = ops.convert_to_numpy(span_loss(WEIGHTS, logits))

    assert loss.shape == (3,)
    expected = -np.log((WEIGHTS * softmax(logits)).sum(axis=1))
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_all_weight_on_one_token_is_cross_entropy(logits):
    tokens = np.array([1, 0, 3])

    loss = span_loss(np.eye(5)[tokens], logits)

    expected = keras.losses.sparse_categorical_crossentropy(
        tokens, logits, from_logits=True
    )
    np.testing.assert_allclose(
        ops.convert_to_numpy(loss), ops.convert_to_numpy(expected), rtol=1e-5
    )


def test_an_answer_at_another_place_costs_little_and_elsewhere_much():
    """Unlike under cross-entropy, where the two cost the same."""
    logits = 40.0 * np.eye(5, dtype="float32")[[2, 3, 1]]
    weights = np.tile(WEIGHTS[1], (3, 1))

    loss = ops.convert_to_numpy(span_loss(weights, logits))

    np.testing.assert_allclose(loss[:2], -np.log([0.75, 0.125]), rtol=1e-5)
    assert loss[2] > 39


def test_gradient_against_numpy(logits, gradients):
    (gradient,) = gradients(lambda x: ops.sum(span_loss(WEIGHTS, x)), logits)

    np.testing.assert_allclose(gradient, numpy_gradient(logits), atol=1e-6)


@pytest.mark.parametrize("scale", [0.0, 1e3, -1e3])
def test_loss_and_gradient_are_finite_at_extreme_logits(scale, logits, gradients):
    logits = scale * logits.clip(-9, 9)

    loss = ops.convert_to_numpy(span_loss(WEIGHTS, logits))
    (gradient,) = gradients(lambda x: ops.sum(span_loss(WEIGHTS, x)), logits)

    assert np.all(np.isfinite(loss))
    assert np.all(loss >= 0.0)
    assert np.all(np.isfinite(gradient))
    assert np.any(gradient != 0.0)


def test_half_precision_is_computed_in_single(logits):
    half = ops.cast(logits, "bfloat16")

    loss = span_loss(WEIGHTS, half)

    assert ops.dtype(loss) == "float32"
    single = span_loss(WEIGHTS, ops.cast(half, "float32"))
    np.testing.assert_array_equal(
        ops.convert_to_numpy(loss), ops.convert_to_numpy(single)
    )


def test_compiled_training_goes_down_without_nan():
    """Marked at place 2 or, one in four, at 0 or 3: the best answer is place 2."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(5, use_bias=False)])
    model.compile(keras.optimizers.SGD(1.0), span_loss, jit_compile=True)
    weights = WEIGHTS[1:2]

    losses = [float(model.train_on_batch(np.ones((1, 1)), weights)) for _ in range(80)]

    assert np.all(np.isfinite(losses))
    assert losses[-1] == pytest.approx(-np.log(0.75), abs=0.05)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_smoothed_cross_entropy_is_that_of_the_formula(rng, smoothing):
    logits = rng.normal(size=(2, 3, 7)).astype("float32")
    target = np.array([[4, 6, 3], [5, 0, 0]], dtype="int32")
    q = np.full((2, 3, 7), smoothing / 7)
    q[np.arange(2)[:, None], np.arange(3), target] += 1 - smoothing
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    expected = -(q * np.log(p)).sum(axis=-1)[target != 0].mean()
    total, count = smoothed_cross_entropy(target, logits, smoothing)
    assert float(count) == 4
    assert float(total) / 4 == pytest.approx(expected, rel=1e-5)
    nothing = smoothed_cross_entropy(np.zeros((2, 3), "int32"), logits, smoothing)
    assert [float(number) for number in nothing] == [0.0, 0.0]
