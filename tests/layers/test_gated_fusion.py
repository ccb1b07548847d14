"""Tests of qanet.layers.gated_fusion."""

import numpy as np
from keras import ops

from qanet.layers.gated_fusion import GatedFusion


def test_against_numpy(rng, randomise, reference):
    x, y = (rng.normal(size=(2, 3, 4)).astype("float32") for _ in range(2))
    layer = GatedFusion()
    layer(x, y)
    weights = randomise(layer)
    output = ops.convert_to_numpy(layer(x, y))
    for i in range(2):
        expected = reference.gated_fusion(x[i], y[i], weights)
        np.testing.assert_allclose(output[i], expected, atol=1e-5)


def test_round_trip(rng, check_round_trip):
    x = rng.normal(size=(2, 2, 3, 4)).astype("float32")
    check_round_trip(GatedFusion(), *x)
