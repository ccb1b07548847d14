"""Tests of qanet.layers.attention_pooling."""

import numpy as np
from keras import ops

from qanet.layers.attention_pooling import AttentionPooling


def test_against_numpy(texts, lengths, randomise, reference):
    x, _, mask, _ = texts
    layer = AttentionPooling()
    layer(x, mask)
    weights = randomise(layer)
    output = ops.convert_to_numpy(layer(x, mask))
    assert layer.compute_output_shape(x.shape, mask.shape) == output.shape
    for i, (n, _) in enumerate(lengths):
        expected = reference.attention_pooling(x[i, :n], weights)
        np.testing.assert_allclose(output[i], expected, atol=1e-5)


def test_round_trip(texts, check_round_trip):
    check_round_trip(AttentionPooling(), texts[0], texts[2])
