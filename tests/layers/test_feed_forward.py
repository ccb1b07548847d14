"""Tests of qanet.layers.feed_forward."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.feed_forward import FeedForward


@pytest.fixture
def x(rng):
    return rng.normal(size=(3, 6, 8)).astype("float32")


def test_feed_forward_against_numpy(x, randomise, reference):
    layer = FeedForward(5)
    layer.build(x.shape)
    weights = randomise(layer)

    output = ops.convert_to_numpy(layer(x))

    assert layer.compute_output_shape(x.shape) == output.shape
    for actual, text in zip(output, x.astype("float64"), strict=True):
        expected = reference.feed_forward(text, weights)
        np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_round_trip(x, check_round_trip):
    check_round_trip(FeedForward(5), x)
