"""Tests of qanet.layers.gated_fusion."""

import numpy as np
from keras import ops

from qanet.layers.gated_fusion import GatedFusion


def test_against_numpy(rng, randomise):
    x, y = (rng.normal(size=(2, 3, 4)).astype("float32") for _ in range(2))
    layer = GatedFusion()
    layer(x, y)
    weights = randomise(layer)
    output = ops.convert_to_numpy(layer(x, y))
    for i in range(2):
        for j in range(3):
            a, b = x[i, j].astype("float64"), y[i, j].astype("float64")
            pair = np.concatenate([a, b, a * b, a - b])
            m = np.tanh(pair @ weights["fused/kernel"] + weights["fused/bias"])
            z = pair @ weights["gate/kernel"] + weights["gate/bias"]
            g = 1 / (1 + np.exp(-z[0]))
            np.testing.assert_allclose(output[i, j], g * m + (1 - g) * a, atol=1e-5)


def test_round_trip(rng, check_round_trip):
    x = rng.normal(size=(2, 2, 3, 4)).astype("float32")
    check_round_trip(GatedFusion(), *x)
