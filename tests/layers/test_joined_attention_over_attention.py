"""Tests of qanet.layers.joined_attention_over_attention."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.joined_attention_over_attention import JoinedAttentionOverAttention

QUESTION = np.array([[5, 6], [7, 0]], "int32")
CONTEXT = np.array([[8, 9, 4], [8, 2, 0]], "int32")


@pytest.fixture
def x(rng):
    return rng.normal(size=(2, 8, 5)).astype("float32")


def built(x):
    layer = JoinedAttentionOverAttention()
    layer.build(x.shape, QUESTION.shape, CONTEXT.shape)
    return layer


def numpy_layer(x, kernel, gain, reference):
    """Piece by piece: start and end, of real pieces alone."""
    outputs = np.zeros((2, 2, 4))
    for row, (question, context) in enumerate(zip(QUESTION, CONTEXT, strict=True)):
        # [CLS] question question [SEP] context context context [SEP]
        n, m = np.count_nonzero(context), np.count_nonzero(question)
        states, asked = x[row, 4 : 4 + n], x[row, 1 : 1 + m] / np.sqrt(5)
        for i, part in enumerate((kernel[:, :5], kernel[:, 5:])):
            total = reference.attention_over_attention(states @ part, asked)
            outputs[i, row, 1 : 1 + n] = gain[i] * np.log(total)
    return outputs


def test_against_numpy(x, randomise, reference):
    layer = built(x)
    weights = randomise(layer)
    found = [ops.convert_to_numpy(y) for y in layer(x, QUESTION, CONTEXT)]
    expected = numpy_layer(x, weights["projection/kernel"], weights["gain"], reference)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_round_trip(x, check_round_trip):
    check_round_trip(JoinedAttentionOverAttention(), x, QUESTION, CONTEXT)
