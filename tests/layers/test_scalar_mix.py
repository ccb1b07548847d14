"""Tests of qanet.layers.scalar_mix."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.scalar_mix import ScalarMix


@pytest.fixture
def x(rng):
    return rng.normal(size=(2, 4, 3, 5)).astype("float32")


def mix(x, weights):
    powers = np.exp(weights["scalars"])
    shares = powers / powers.sum()
    return weights["gamma"] * sum(shares[j] * x[:, :, j] for j in range(3))


def test_against_numpy(x, randomise, check_gradients, rng):
    layer = ScalarMix()
    layer(x)
    weights = randomise(layer)
    output = ops.convert_to_numpy(layer(x))
    np.testing.assert_allclose(output, mix(x, weights), atol=1e-6)
    assert layer.compute_output_shape(x.shape) == output.shape
    upstream = rng.normal(size=output.shape).astype("float32")
    check_gradients(layer, mix, x, weights, upstream)


def test_it_starts_as_the_mean(x):
    output = ops.convert_to_numpy(ScalarMix()(x))
    np.testing.assert_allclose(output, x.mean(axis=2), atol=1e-6)


def test_round_trip(x, check_round_trip):
    check_round_trip(ScalarMix(), x)


def test_mixed_bfloat16(mixed_bfloat16, x, randomise):
    layer = ScalarMix()
    layer(x)
    weights = randomise(layer)
    output = layer(x)
    assert ops.dtype(output) == "bfloat16"
    found = ops.convert_to_numpy(ops.cast(output, "float32"))
    np.testing.assert_allclose(found, mix(x, weights), atol=0.05)
