"""Tests of qanet.layers.plain_convolution."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.plain_convolution import PlainConv1D


@pytest.mark.parametrize("kernel_size", [1, 2, 5])
def test_against_numpy(kernel_size, texts, lengths, randomise, reference):
    x, _, mask, _ = texts
    layer = PlainConv1D(3, kernel_size)
    layer(x, mask=mask)
    weights = randomise(layer)
    output = ops.convert_to_numpy(layer(x, mask=mask))
    for i, (n, _) in enumerate(lengths):
        expected = reference.plain_convolution(x[i, :n], weights)
        np.testing.assert_allclose(output[i, :n], expected, atol=1e-5)


def test_round_trip(texts, check_round_trip):
    check_round_trip(PlainConv1D(3, 2), texts[0], mask=texts[2])
