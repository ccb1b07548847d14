"""Tests of qanet.layers.bilinear_pointer."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.bilinear_pointer import BilinearPointer
from qanet.layers.numerics import MASKED_LOGIT


@pytest.fixture
def inputs(texts, rng):
    """Context, the question's vector, which may be of another width, and the mask."""
    return texts[0], rng.normal(size=(2, 3)).astype("float32"), texts[2]


def test_against_numpy(inputs, lengths, randomise, reference):
    layer = BilinearPointer()
    layer(*inputs)
    weights = randomise(layer)
    context, question, mask = inputs
    outputs = np.stack([ops.convert_to_numpy(logits) for logits in layer(*inputs)])
    for i, (n, _) in enumerate(lengths):
        expected = reference.bilinear_pointer(context[i, :n], question[i], weights)
        np.testing.assert_allclose(outputs[:, i, :n], expected, atol=1e-4)
    assert np.all(outputs[:, ~mask] == MASKED_LOGIT)


def test_bfloat16_gives_float32_logits(mixed_bfloat16, inputs):
    for logits in BilinearPointer()(*inputs):
        assert ops.dtype(logits) == "float32"
