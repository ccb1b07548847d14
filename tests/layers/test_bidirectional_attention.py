"""Tests of qanet.layers.bidirectional_attention."""

import numpy as np
from keras import ops

from qanet.layers.bidirectional_attention import BidirectionalAttention


def test_against_numpy(texts, lengths, randomise, reference):
    layer = BidirectionalAttention()
    layer(*texts)
    weights = randomise(layer)
    output = ops.convert_to_numpy(layer(*texts))
    assert output.shape == (2, 4, 20)
    for i, (n, m) in enumerate(lengths):
        context, question = texts[0][i, :n], texts[1][i, :m]
        expected = reference.bidirectional_attention(context, question, weights)
        np.testing.assert_allclose(output[i, :n], expected, atol=1e-5)


def test_it_is_made_again_from_its_configuration(texts, check_round_trip):
    check_round_trip(BidirectionalAttention(), *texts)
