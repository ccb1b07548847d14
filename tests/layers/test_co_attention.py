"""Tests of qanet.layers.co_attention."""

import numpy as np
from keras import ops

from qanet.layers.co_attention import CoAttention


def test_against_numpy(texts, lengths, randomise, softmax):
    layer = CoAttention()
    layer(*texts)
    weights = randomise(layer)
    of_context, of_question = map(ops.convert_to_numpy, layer(*texts))
    for i, (n, m) in enumerate(lengths):
        context, question = texts[0][i, :n], texts[1][i, :m]
        kernel = weights["projection/kernel"]
        c, q = np.maximum(context @ kernel, 0), np.maximum(question @ kernel, 0)
        for j in range(n):
            expected = softmax(q @ c[j]) @ question
            np.testing.assert_allclose(of_context[i, j], expected, atol=1e-5)
        for j in range(m):
            expected = softmax(c @ q[j]) @ context
            np.testing.assert_allclose(of_question[i, j], expected, atol=1e-5)


def test_round_trip(texts, check_round_trip):
    check_round_trip(CoAttention(), *texts)


def test_shapes_are_told(texts):
    layer = CoAttention()
    outputs = layer(*texts)
    told = layer.compute_output_shape(*(text.shape for text in texts))
    assert told == tuple(output.shape for output in outputs)
