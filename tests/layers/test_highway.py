"""Tests of qanet.layers.highway."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.highway import Highway

pytestmark = pytest.mark.usefixtures("fixed_seed")


@pytest.fixture
def x(rng):
    return rng.normal(size=(3, 6, 8)).astype("float32")


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_against_numpy(layers, x, randomise, reference):
    layer = Highway(layers)
    layer.build(x.shape)
    weights = randomise(layer)

    output = ops.convert_to_numpy(layer(x))

    for actual, text in zip(output, x, strict=True):
        expected = reference.highway(text.astype("float64"), weights, layers)
        np.testing.assert_allclose(actual, expected, atol=1e-5)
    assert layer.compute_output_shape(x.shape) == output.shape


def test_a_new_layer_passes_most_of_its_input_on(x):
    layer = Highway(1)
    layer.build(x.shape)
    for weight in layer.weights:
        if "kernel" in weight.path:
            weight.assign(np.zeros(weight.shape))

    share = ops.convert_to_numpy(layer(x)) / x

    assert np.all(share > 0.5)


def test_dropout_is_in_training_alone_and_never_drops_the_carried_input(x):
    layer = Highway(1, dropout=0.9)
    layer.build(x.shape)
    x = np.abs(x) + 1.0

    first = ops.convert_to_numpy(layer(x, training=True))

    assert np.any(first != ops.convert_to_numpy(layer(x, training=True)))
    assert np.all(first > 0.0)
    np.testing.assert_array_equal(
        ops.convert_to_numpy(layer(x)), ops.convert_to_numpy(layer(x))
    )


def test_round_trip(x, check_round_trip):
    check_round_trip(Highway(1, dropout=0.1), x)


def test_mixed_bfloat16(mixed_bfloat16, x, randomise, reference):
    layer = Highway(2)
    layer.build(x.shape)
    weights = randomise(layer)

    output = layer(x)

    assert ops.dtype(output) == "bfloat16"
    actual = ops.convert_to_numpy(output)[0].astype("float64")
    expected = reference.highway(x[0].astype("float64"), weights, 2)
    np.testing.assert_allclose(actual, expected, atol=0.1)
