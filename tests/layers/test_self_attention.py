"""Tests of qanet.layers.self_attention."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.self_attention import MultiHeadSelfAttention

LENGTHS = (6, 3, 1)
MASK = np.arange(6) < np.array(LENGTHS)[:, None]


@pytest.fixture
def x(rng):
    """Three padded texts, with rubbish at the padding."""
    return rng.normal(size=(3, 6, 8)).astype("float32")


# The number of heads equals the batch in one case: a mask repeated in the order of
# heads instead of examples would have the right shape there.
@pytest.mark.parametrize("heads", [1, 2, 4, 8])
def test_each_example_keeps_its_own_mask_in_every_head(heads, x, randomise, reference):
    layer = MultiHeadSelfAttention(heads)
    layer.build(x.shape)
    weights = randomise(layer)

    output = ops.convert_to_numpy(layer(x, mask=MASK))

    assert layer.compute_output_shape(x.shape) == output.shape
    for actual, text, length in zip(output, x, LENGTHS, strict=True):
        text = text[:length].astype("float64")
        expected = reference.self_attention(text, weights, heads)
        np.testing.assert_allclose(actual[:length], expected, atol=1e-5)


def test_weights_are_dropped_and_not_shared_out_anew(fixed_seed):
    """All attend to all alike, and each value is 1: what is left of 6 weights of 1/6,
    each doubled where it is kept."""
    layer = MultiHeadSelfAttention(1, dropout=0.5, bias=True)
    layer.build((1, 6, 8))
    for variable in layer.variables:
        if variable.name == "kernel" or variable.name == "bias":
            variable.assign(np.zeros(variable.shape))
    layer.projection.bias.assign([0.0] * 16 + [1.0] * 8)
    layer.output_projection.kernel.assign(np.eye(8))
    output = ops.convert_to_numpy(
        layer(ops.ones((1, 6, 8)), mask=np.ones((1, 6), bool), training=True)
    )
    kept = output * 3
    np.testing.assert_allclose(kept, np.rint(kept), atol=1e-5)
    assert len(set(np.rint(kept[0, :, 0]))) > 1


def test_first_weights_are_drawn_for_each_matrix():
    """By Glorot's bound of a square one, not of all three side by side."""
    layer = MultiHeadSelfAttention(2)
    layer.build((None, None, 48))
    kernel = ops.convert_to_numpy(layer.projection.kernel)
    bound = (6 / (48 + 48)) ** 0.5
    for matrix in np.split(kernel, 3, axis=1):
        assert bound * 0.9 < np.abs(matrix).max() <= bound


def test_padding_is_not_attended_to(x, randomise):
    layer = MultiHeadSelfAttention(2)
    layer.build(x.shape)
    randomise(layer)
    other = np.where(MASK[..., None], x, 1e3).astype("float32")

    before = ops.convert_to_numpy(layer(x, mask=MASK))
    after = ops.convert_to_numpy(layer(other, mask=MASK))

    np.testing.assert_array_equal(before[MASK], after[MASK])


def test_large_logits_and_an_empty_text_are_finite(x, randomise):
    layer = MultiHeadSelfAttention(2)
    layer.build(x.shape)
    randomise(layer)
    mask = MASK.copy()
    mask[1] = False

    output = ops.convert_to_numpy(layer(30 * x, mask=mask))

    assert np.all(np.isfinite(output))


def test_gradients_against_differences(x, rng, randomise, reference, check_gradients):
    layer = MultiHeadSelfAttention(2)
    layer.build(x.shape)
    weights = randomise(layer)
    upstream = rng.normal(size=x.shape).astype("float32") * MASK[..., None]

    def function(x, weights):
        output = np.zeros(x.shape)
        for i, length in enumerate(LENGTHS):
            output[i, :length] = reference.self_attention(x[i, :length], weights, 2)
        return output

    check_gradients(layer, function, x, weights, upstream, mask=MASK)


def test_heads_that_do_not_divide_the_width_are_refused(x):
    with pytest.raises(ValueError, match="3 heads do not divide the width 8"):
        MultiHeadSelfAttention(3).build(x.shape)


def test_round_trip(x, check_round_trip):
    check_round_trip(MultiHeadSelfAttention(2), x, mask=MASK)


def test_mixed_bfloat16(mixed_bfloat16, x, randomise, reference):
    layer = MultiHeadSelfAttention(2)
    layer.build(x.shape)
    weights = randomise(layer, bound=0.3)
    mask = MASK.copy()
    mask[2] = False

    output = layer(x, mask=mask)

    assert ops.dtype(output) == "bfloat16"
    actual = ops.convert_to_numpy(output).astype("float64")
    assert np.all(np.isfinite(actual))
    expected = reference.self_attention(x[1, :3].astype("float64"), weights, 2)
    np.testing.assert_allclose(actual[1, :3], expected, atol=0.03)
