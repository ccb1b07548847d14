"""Tests of qanet.layers.co_attention."""

import numpy as np
from keras import ops

from qanet.layers.co_attention import CoAttention


def test_against_numpy(texts, lengths, randomise, reference):
    layer = CoAttention()
    layer(*texts)
    weights = randomise(layer)
    outputs = [ops.convert_to_numpy(output) for output in layer(*texts)]
    for i, (n, m) in enumerate(lengths):
        expected = reference.co_attention(texts[0][i, :n], texts[1][i, :m], weights)
        for output, attended in zip(outputs, expected, strict=True):
            found = output[i, : len(attended)]
            np.testing.assert_allclose(found, attended, atol=1e-5)


def test_round_trip(texts, check_round_trip):
    check_round_trip(CoAttention(), *texts)


def test_shapes_are_told(texts):
    layer = CoAttention()
    outputs = layer(*texts)
    told = layer.compute_output_shape(*(text.shape for text in texts))
    assert told == tuple(output.shape for output in outputs)
