"""Tests of qanet.layers.self_alignment."""

import numpy as np
from keras import ops

from qanet.layers.self_alignment import BilinearSelfAlignment


def test_against_numpy(texts, lengths, randomise, reference):
    x, _, mask, _ = texts
    layer = BilinearSelfAlignment()
    layer(x, mask)
    weights = randomise(layer)
    output = ops.convert_to_numpy(layer(x, mask))
    for i, (n, _) in enumerate(lengths):
        expected = reference.self_alignment(x[i, :n], weights)
        np.testing.assert_allclose(output[i, :n], expected, atol=1e-5)


def test_round_trip(texts, check_round_trip):
    check_round_trip(BilinearSelfAlignment(), texts[0], texts[2])
