"""Tests of qanet.layers.bidirectional_attention."""

import numpy as np
from keras import ops

from qanet.layers.bidirectional_attention import BidirectionalAttention


def numpy_attention(context, question, weights, softmax):
    """On one example without padding, word by word as in the paper."""
    w = np.concatenate(
        [weights[f"{name}_weight"] for name in ("context", "question", "product")]
    )
    similarity = np.array(
        [[w @ np.concatenate([h, u, h * u]) for u in question] for h in context]
    )
    summed = softmax(similarity.max(axis=1)) @ context
    rows = []
    for h, row in zip(context, similarity, strict=True):
        attended = softmax(row) @ question
        rows.append(np.concatenate([h, attended, h * attended, h * summed]))
    return np.array(rows)


def test_against_numpy(texts, lengths, randomise, softmax):
    layer = BidirectionalAttention()
    layer(*texts)
    weights = randomise(layer)
    output = ops.convert_to_numpy(layer(*texts))
    assert output.shape == (2, 4, 20)
    for i, (n, m) in enumerate(lengths):
        context, question = texts[0][i, :n], texts[1][i, :m]
        expected = numpy_attention(context, question, weights, softmax)
        np.testing.assert_allclose(output[i, :n], expected, atol=1e-5)


def test_it_is_made_again_from_its_configuration(texts, check_round_trip):
    check_round_trip(BidirectionalAttention(), *texts)
