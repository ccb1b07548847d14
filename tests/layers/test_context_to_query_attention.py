"""Tests of qanet.layers.context_to_query_attention."""

import numpy as np
from keras import ops

from qanet.layers.context_query_attention import ContextQueryAttention
from qanet.layers.context_to_query_attention import ContextToQueryAttention


def test_it_is_the_paper_s_attention_without_the_way_back(texts, randomise):
    layer, both = ContextToQueryAttention(), ContextQueryAttention()
    for one in (layer, both):
        one(*texts)
        weights = randomise(one)
    for weight in layer.weights:
        weight.assign(weights[weight.name].astype("float32"))
    output = ops.convert_to_numpy(layer(*texts))
    expected = ops.convert_to_numpy(both(*texts))
    np.testing.assert_allclose(output, expected[..., : output.shape[-1]], atol=1e-6)
    assert layer.compute_output_shape(texts[0].shape) == output.shape


def test_round_trip(texts, check_round_trip):
    check_round_trip(ContextToQueryAttention(), *texts)
