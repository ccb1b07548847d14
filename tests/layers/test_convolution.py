"""Tests of qanet.layers.convolution."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.convolution import DepthwiseSeparableConv1D

LENGTHS = (6, 4, 1)
MASK = np.arange(6) < np.array(LENGTHS)[:, None]


@pytest.fixture
def x(rng):
    """Three padded texts, with rubbish at the padding."""
    return rng.normal(size=(3, 6, 8)).astype("float32")


@pytest.mark.parametrize("kernel_size", [1, 2, 3, 7])
@pytest.mark.parametrize("filters", [8, 3])
def test_against_numpy(kernel_size, filters, x, randomise, reference):
    layer = DepthwiseSeparableConv1D(filters, kernel_size)
    layer.build(x.shape)
    weights = randomise(layer)

    output = ops.convert_to_numpy(layer(x, mask=MASK))

    assert layer.compute_output_shape(x.shape) == output.shape
    for actual, text, length in zip(output, x, LENGTHS, strict=True):
        text = text[:length].astype("float64")
        expected = reference.convolution(text, weights)
        np.testing.assert_allclose(actual[:length], expected, atol=1e-5)


def test_first_weights_keep_the_variance():
    layer = DepthwiseSeparableConv1D(48, 7)
    layer.build((None, None, 40))
    bound = (3 / 7) ** 0.5
    largest = np.abs(ops.convert_to_numpy(layer.depthwise)).max()
    assert bound * 0.9 < largest <= bound
    bound = (6 / (40 + 48)) ** 0.5
    largest = np.abs(ops.convert_to_numpy(layer.pointwise)).max()
    assert bound * 0.9 < largest <= bound


def test_padding_does_not_leak_into_real_positions(x, randomise):
    layer = DepthwiseSeparableConv1D(8, 7)
    layer.build(x.shape)
    randomise(layer)
    other = np.where(MASK[..., None], x, 1e4).astype("float32")

    before = ops.convert_to_numpy(layer(x, mask=MASK))
    after = ops.convert_to_numpy(layer(other, mask=MASK))

    np.testing.assert_array_equal(before[MASK], after[MASK])


@pytest.mark.parametrize("kernel_size", [2, 3, 7])
def test_gradients_against_differences(
    kernel_size, x, rng, randomise, reference, check_gradients
):
    layer = DepthwiseSeparableConv1D(8, kernel_size)
    layer.build(x.shape)
    weights = randomise(layer)
    upstream = rng.normal(size=x.shape).astype("float32") * MASK[..., None]

    def function(x, weights):
        output = np.zeros(x.shape)
        for i, length in enumerate(LENGTHS):
            output[i, :length] = reference.convolution(x[i, :length], weights)
        return output

    check_gradients(layer, function, x, weights, upstream, mask=MASK)


def test_no_gradient_reaches_padding(x, randomise, gradients):
    layer = DepthwiseSeparableConv1D(8, 7)
    layer.build(x.shape)
    randomise(layer)

    (gradient,) = gradients(lambda x: ops.sum(layer(x, mask=MASK)), x)

    assert np.all(gradient[~MASK] == 0.0)
    assert np.any(gradient[MASK] != 0.0)


def test_round_trip(x, check_round_trip):
    check_round_trip(DepthwiseSeparableConv1D(3, 5), x, mask=MASK)


def test_mixed_bfloat16(mixed_bfloat16, x, randomise, reference):
    layer = DepthwiseSeparableConv1D(8, 5)
    layer.build(x.shape)
    weights = randomise(layer)

    output = layer(x, mask=MASK)

    assert ops.dtype(output) == "bfloat16"
    actual = ops.convert_to_numpy(output)[0].astype("float64")
    expected = reference.convolution(x[0].astype("float64"), weights)
    np.testing.assert_allclose(actual, expected, atol=0.1)


def test_mixed_bfloat16_has_gradients(
    mixed_bfloat16, x, randomise, gradients, call_with
):
    layer = DepthwiseSeparableConv1D(8, 5)
    layer.build(x.shape)
    randomise(layer)

    def loss(*values):
        output = call_with(layer, values, x, mask=MASK)
        return ops.sum(ops.cast(output, "float32"))

    for gradient in gradients(loss, *layer.get_weights()):
        assert gradient.dtype == "float32"
        assert np.all(np.isfinite(gradient))
        assert np.any(gradient != 0.0)
