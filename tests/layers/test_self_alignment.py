"""Tests of qanet.layers.self_alignment."""

import numpy as np
from keras import ops

from qanet.layers.self_alignment import BilinearSelfAlignment


def test_against_numpy(texts, lengths, randomise, softmax):
    x, _, mask, _ = texts
    layer = BilinearSelfAlignment()
    layer(x, mask)
    weights = randomise(layer)
    output = ops.convert_to_numpy(layer(x, mask))
    for i, (n, _) in enumerate(lengths):
        text = x[i, :n].astype("float64")
        for j in range(n):
            logits = [text[j] @ weights["bilinear/kernel"] @ other for other in text]
            np.testing.assert_allclose(
                output[i, j], softmax(np.array(logits)) @ text, atol=1e-5
            )


def test_round_trip(texts, check_round_trip):
    check_round_trip(BilinearSelfAlignment(), texts[0], texts[2])
