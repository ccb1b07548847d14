"""Tests of qanet.layers.residual."""

import keras
import numpy as np
import pytest
from keras import ops

from qanet.layers.convolution import DepthwiseSeparableConv1D
from qanet.layers.feed_forward import FeedForward
from qanet.layers.residual import Residual

pytestmark = pytest.mark.usefixtures("fixed_seed")

MASK = np.ones((3, 6), bool)


class Same(keras.layers.Layer):
    """A sub-layer that returns what it is given, so that the rest can be seen."""

    def __init__(self):
        super().__init__()
        self.supports_masking = True

    def call(self, x, mask=None):
        return x


@pytest.fixture
def x(rng):
    return rng.normal(size=(3, 6, 8)).astype("float32")


def difference(layer, x, **arguments):
    """What the sub-layer adds."""
    mask = np.ones(x.shape[:2], bool)
    return ops.convert_to_numpy(layer(x, mask=mask, **arguments)) - x


@pytest.mark.parametrize("survival", [1.0, 0.7])
def test_against_numpy_with_survival_scaled_at_test(survival, x, randomise, reference):
    layer = Residual(FeedForward(3, name="inner"), dropout=0.5, survival=survival)
    layer.build(x.shape)
    weights = randomise(layer)

    output = ops.convert_to_numpy(layer(x, mask=MASK))

    assert layer.compute_output_shape(x.shape) == output.shape
    for actual, text in zip(output, x.astype("float64"), strict=True):
        y = reference.layer_norm(text, reference.below(weights, "norm"))
        y = reference.feed_forward(y, reference.below(weights, "inner"))
        np.testing.assert_allclose(actual, text + survival * y, atol=1e-5)


def test_layer_norm_is_over_the_features_of_a_position_not_over_the_text(x):
    layer = Residual(Same())
    other = x.copy()
    other[:, 2] = 100.0 * np.arange(8)

    before, after = difference(layer, x), difference(layer, other)

    np.testing.assert_allclose(before.mean(axis=2), 0.0, atol=1e-5)
    np.testing.assert_allclose(before.std(axis=2), 1.0, atol=1e-3)
    rest = [0, 1, 3, 4, 5]
    np.testing.assert_array_equal(before[:, rest], after[:, rest])


def test_dropout_comes_after_the_sublayer_not_before_the_layer_norm(x, reference):
    layer = Residual(Same(), dropout=0.4)
    ones = {"gamma": np.ones(8), "beta": np.zeros(8)}
    normal = np.array([reference.layer_norm(t.astype("float64"), ones) for t in x])

    added = difference(layer, x, training=True)

    dropped = np.isclose(added, 0.0, atol=1e-6)
    np.testing.assert_allclose(added[~dropped], normal[~dropped] / 0.6, atol=1e-5)
    assert 0.2 < np.mean(dropped) < 0.6


def test_layer_dropout_leaves_out_whole_examples_not_elements(rng):
    x = rng.normal(size=(1000, 2, 8)).astype("float32")
    layer = Residual(Same(), survival=0.75)
    full = difference(layer, x) / 0.75

    added = difference(layer, x, training=True)

    # A survivor is not scaled in training.
    survived = np.any(added != 0.0, axis=(1, 2))
    expected = np.where(survived[:, None, None], full, 0.0)
    np.testing.assert_allclose(added, expected, atol=1e-5)
    assert abs(np.mean(survived) - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 1000)
    again = np.any(difference(layer, x, training=True) != 0.0, axis=(1, 2))
    assert np.any(survived != again)


def test_layer_dropout_and_dropout_are_independent(rng):
    x = rng.normal(size=(1000, 2, 8)).astype("float32")
    layer = Residual(Same(), dropout=0.5, survival=0.5)

    kept = difference(layer, x, training=True) != 0.0

    # Were they one decision, half of the elements would be left instead of a quarter.
    assert abs(np.mean(kept) - 0.25) < 0.06


def test_training_without_dropout_is_inference(x, randomise):
    layer = Residual(FeedForward(3))
    layer.build(x.shape)
    randomise(layer)

    np.testing.assert_array_equal(
        difference(layer, x, training=True), difference(layer, x)
    )


def test_gradients_in_training_are_those_of_what_was_computed(
    rng, gradients, call_with
):
    """With the noise held, the layer is x + noise * layer_norm(x)."""
    x = rng.normal(size=(3, 6, 8)).astype("float32")
    layer = Residual(Same(), dropout=0.3, survival=0.6)
    layer.build(x.shape)
    direction = rng.normal(size=x.shape).astype("float32")
    upstream = rng.normal(size=x.shape).astype("float32")

    def loss(x):
        output = call_with(layer, layer.get_weights(), x, mask=MASK, training=True)
        return ops.sum(output * upstream)

    (gradient,) = gradients(loss, x)
    step = 1e-2 * direction
    change = (float(loss(x + step)) - float(loss(x - step))) / 2e-2
    np.testing.assert_allclose(np.sum(gradient * direction), change, rtol=1e-2)


@pytest.mark.parametrize("survival", [1.0, 0.5])
@pytest.mark.parametrize("training", [False, True])
def test_the_sum_is_not_in_half_precision(survival, training, mixed_bfloat16, x):
    """Beside 1000, bfloat16 has no smaller step than 4."""
    layer = Residual(Same(), survival=survival)

    output = layer(x + 1000, mask=MASK, training=training)

    assert ops.dtype(output) == "float32"
    added = ops.convert_to_numpy(output) - (x + 1000)
    normal = (x - x.mean(axis=2, keepdims=True)) / x.std(axis=2, keepdims=True)
    share = 1.0 if training else survival
    if training and survival < 1.0:
        normal = np.where(np.any(added != 0.0, axis=(1, 2), keepdims=True), normal, 0.0)
    np.testing.assert_allclose(added, share * normal, atol=0.02)


def test_mask_reaches_the_sublayer(x, randomise):
    layer = Residual(DepthwiseSeparableConv1D(8, 5))
    mask = np.arange(6) < np.array([6, 3, 1])[:, None]
    layer.build(x.shape)
    randomise(layer)
    other = np.where(mask[..., None], x, 9.0).astype("float32")

    before = ops.convert_to_numpy(layer(x, mask=mask))
    after = ops.convert_to_numpy(layer(other, mask=mask))

    np.testing.assert_array_equal(before[mask], after[mask])


def test_round_trip(x, check_round_trip):
    layer = Residual(FeedForward(3), dropout=0.1, survival=0.9)

    check_round_trip(layer, x, mask=MASK)


def test_mixed_bfloat16(mixed_bfloat16, x, randomise):
    layer = Residual(FeedForward(3), dropout=0.1, survival=0.9)
    layer.build(x.shape)
    randomise(layer)

    for training in (False, True):
        output = layer(x, mask=MASK, training=training)
        assert ops.dtype(output) == "float32"
        assert np.all(np.isfinite(ops.convert_to_numpy(output).astype("float32")))
