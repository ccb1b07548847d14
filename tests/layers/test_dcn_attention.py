"""Tests of qanet.layers.dcn_attention."""

import numpy as np
from keras import ops

from qanet.layers.dcn_attention import DCNAttention


def test_against_numpy(texts, lengths, randomise, softmax):
    """On each example without padding, as the paper writes it."""
    layer = DCNAttention()
    layer(*texts)
    weights = randomise(layer)
    output = ops.convert_to_numpy(layer(*texts))
    rows = ops.convert_to_numpy(layer.weights_of(*texts)[0])
    assert layer.compute_output_shape(texts[0].shape) == output.shape
    for i, (n, m) in enumerate(lengths):
        context, question = (
            text[i, :size].astype("float64")
            for text, size in zip(texts[:2], (n, m), strict=True)
        )
        question = np.tanh(
            question @ weights["projection/kernel"] + weights["projection/bias"]
        )
        c = np.vstack([weights["sentinels"][:1], context])
        q = np.vstack([weights["sentinels"][1:], question])
        affinity = c @ q.T
        back = np.array([softmax(column) @ c for column in affinity.T])
        for j in range(1, n + 1):
            row = softmax(affinity[j])
            expected = np.concatenate([c[j], row @ q, row @ back])
            np.testing.assert_allclose(output[i, j - 1], expected, atol=1e-5)
            np.testing.assert_allclose(rows[i, j - 1, :m], row[1:], atol=1e-5)


def test_like_words_begin_alike(rng):
    """As one encoder would make them: a word of the question looks at its like."""
    context = 4.0 * rng.normal(size=(1, 6, 64)).astype("float32")
    question = context[:, [4, 1, 3]]
    masks = np.ones((1, 6), bool), np.ones((1, 3), bool)

    layer = DCNAttention()
    layer(context, question, *masks)
    _, columns = layer.weights_of(context, question, *masks)

    np.testing.assert_array_equal(np.argmax(columns, axis=1), [[4, 1, 3]])


def test_round_trip(texts, check_round_trip):
    check_round_trip(DCNAttention(), *texts)
