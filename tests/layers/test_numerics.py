"""Tests of qanet.layers.numerics."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.numerics import (
    mask_logits,
    masked_softmax,
    with_gradient,
    zero_padding,
)


@pytest.mark.parametrize("axis", [1, 2])
def test_masked_softmax_is_a_softmax_over_the_real_positions(axis, rng, reference):
    logits = rng.normal(size=(2, 5, 4)).astype("float32") * 4
    mask = np.zeros((2, 5, 4), bool)
    mask[0, :3, :2] = True
    mask[1] = True

    weights = ops.convert_to_numpy(masked_softmax(logits, mask, axis=axis))

    expected = np.zeros(logits.shape)
    real = logits.astype("float64")
    expected[0, :3, :2] = reference.softmax(real[0, :3, :2], axis=axis - 1)
    expected[1] = reference.softmax(real[1], axis=axis - 1)
    some = mask.any(axis=axis, keepdims=True) & np.ones_like(mask)
    np.testing.assert_allclose(weights[some], expected[some], atol=1e-6)
    assert np.all(weights[some & ~mask] == 0.0)


def test_masked_softmax_of_nothing_is_finite():
    weights = masked_softmax(np.zeros((1, 3), "float32"), np.zeros((1, 3), bool))

    assert np.all(np.isfinite(ops.convert_to_numpy(weights)))


def test_masked_softmax_ignores_a_large_masked_logit():
    logits = np.array([[1.0, 2.0, 1e6]], "float32")
    mask = np.array([[True, True, False]])

    weights = ops.convert_to_numpy(masked_softmax(logits, mask))

    np.testing.assert_allclose(weights, [[0.26894142, 0.73105858, 0.0]], atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_masked_logit_fits_half_precision_unlike_minus_1e30(dtype):
    logits = ops.cast(np.array([[3.0, 60.0]]), dtype)

    masked = mask_logits(logits, np.array([[True, False]]))
    half = ops.convert_to_numpy(ops.cast(masked, dtype)).astype("float64")

    assert half[0, 0] == 3.0
    assert np.isfinite(half[0, 1])
    assert half[0, 1] < -1e4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_softmax_is_computed_in_float32_and_returned_in_the_dtype_given(dtype):
    logits = ops.zeros((1, 3000), dtype=dtype)

    assert ops.dtype(mask_logits(logits, True)) == "float32"
    weights = masked_softmax(logits, np.ones((1, 3000), bool))
    assert ops.dtype(weights) == dtype
    weights = ops.convert_to_numpy(weights).astype("float64")
    np.testing.assert_allclose(weights, 1 / 3000, rtol=4e-3)


def test_zero_padding_clears_even_what_is_not_a_number(rng):
    x = rng.normal(size=(2, 3, 2)).astype("float32")
    mask = np.array([[True, True, False], [True, False, False]])
    dirty = np.where(mask[..., None], x, np.nan).astype("float32")

    clean = ops.convert_to_numpy(zero_padding(dirty, mask))

    np.testing.assert_array_equal(clean, np.where(mask[..., None], x, 0.0))


@pytest.mark.parametrize(("training", "slope"), [(True, 7), (None, 7), (False, 2)])
def test_a_given_gradient_is_that_of_training(gradients, training, slope):
    def doubled(x):
        return 2.0 * x, lambda upstream: 7.0 * upstream

    def loss(x):
        return ops.sum(with_gradient(doubled, training)(x))

    (gradient,) = gradients(loss, np.ones(3, "float32"))
    np.testing.assert_array_equal(gradient, [slope] * 3)
