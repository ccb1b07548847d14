"""Tests of qanet.layers.encoder."""

from functools import partial

import numpy as np
import pytest
from keras import ops

from qanet.layers.encoder import EncoderStack
from qanet.layers.numerics import with_gradient
from qanet.layers.positions import position_signal

pytestmark = pytest.mark.usefixtures("fixed_seed")

LENGTHS = (6, 4, 1)
MASK = np.arange(6) < np.array(LENGTHS)[:, None]


@pytest.fixture
def x(rng):
    """Three padded texts, with rubbish at the padding."""
    return rng.normal(size=(3, 6, 8)).astype("float32")


def stack(blocks=2, convolutions=2, kernel_size=3, heads=2, feed_forward=5, **others):
    return EncoderStack(
        blocks, convolutions, kernel_size, heads, feed_forward, **others
    )


@pytest.mark.parametrize(
    "variant",
    [
        {},
        {"final_norm": False},
        {"position_per_block": True},
        # Survival falls over the whole stack: were it to start again in each block,
        # or not to scale at test, this one would differ.
        {"survival": 0.4},
        {"heads": 0, "survival": 0.4, "position_per_block": True},
        {"separable": False},
    ],
    ids=str,
)
def test_against_numpy(variant, x, randomise, reference):
    layer = stack(dropout=0.5, **variant)
    layer.build(x.shape)
    weights = randomise(layer)

    output = ops.convert_to_numpy(layer(x, mask=MASK))
    parts = {"heads": 2} | variant
    parts.pop("separable", None)

    assert layer.compute_output_shape(x.shape) == output.shape
    for actual, text, length in zip(output, x, LENGTHS, strict=True):
        text = text[:length].astype("float64")
        expected = reference.encoder(text, weights, 2, 2, **parts)
        np.testing.assert_allclose(actual[:length], expected, atol=1e-5)


def test_padding_does_not_leak_through_stacked_convolutions(x, randomise, compiled):
    layer = stack(blocks=1, convolutions=4, kernel_size=7)
    layer.build(x.shape)
    randomise(layer)
    dirty = np.where(MASK[..., None], x, 50.0).astype("float32")
    longer = np.pad(x, ((0, 0), (0, 5), (0, 0)), constant_values=3.0)
    long_mask = np.pad(MASK, ((0, 0), (0, 5)))

    call = compiled(layer)
    expected = ops.convert_to_numpy(call(x, mask=MASK))[MASK]

    for texts, mask in ((dirty, MASK), (longer, long_mask)):
        output = ops.convert_to_numpy(call(texts, mask=mask))
        np.testing.assert_allclose(output[mask], expected, atol=1e-5)


def test_positions_have_no_trained_table_of_fixed_length(
    rng, randomise, reference, compiled
):
    layer = stack(blocks=1, convolutions=1)
    layer.build((1, 3, 8))
    weights = randomise(layer)
    sizes = {size for weight in layer.weights for size in weight.shape}
    text = rng.normal(size=(1, 300, 8)).astype("float32")

    output = compiled(layer)(text, mask=np.ones((1, 300), bool))

    # Nothing but widths (8, 3 * 8), the kernel (3) and the inner size (5).
    assert sizes == {8, 24, 3, 5}
    expected = reference.encoder(text[0].astype("float64"), weights, 1, 1, 2)
    np.testing.assert_allclose(ops.convert_to_numpy(output)[0], expected, atol=1e-4)


def test_positions_are_not_added_again_in_each_block_unless_asked(reference):
    x, mask = np.zeros((3, 6, 8), "float32"), np.ones((3, 6), bool)
    signal = reference.position_signal(6, 8)
    for per_block, times in ((False, 1), (True, 3)):
        layer = stack(blocks=3, position_per_block=per_block, final_norm=False)
        layer.build(x.shape)
        for weight in layer.weights:
            weight.assign(np.zeros(weight.shape))

        output = ops.convert_to_numpy(layer(x, mask=mask))

        np.testing.assert_allclose(output[0], times * signal, atol=1e-5)


def test_survival_falls_over_the_whole_stack_not_from_the_start_in_each_block(compiled):
    """Seen with all weights zero but one bias in each convolution and feed-forward.

    Sub-layer l of the 2 blocks' 6 adds one to feature l; those of attention add 0.
    """
    x, mask = np.zeros((4000, 1, 8), "float32"), np.ones((4000, 1), bool)
    layer = stack(convolutions=1, survival=0.4, final_norm=False)
    layer.build(x.shape)
    biases = []
    for weight in layer.weights:
        weight.assign(np.zeros(weight.shape))
        added = "convolution" in weight.path or "contract" in weight.path
        if added and weight.path.endswith("bias"):
            biases.append(weight)
    levels = [0, 2, 3, 5]
    for level, weight in zip(levels, biases, strict=True):
        weight.assign(np.eye(8)[level])
    signal = ops.convert_to_numpy(position_signal(1, 8))
    survival = 1.0 - np.array([1, 3, 4, 6]) / 6 * 0.6

    added = [
        ops.convert_to_numpy(compiled(partial(layer, training=training))(x, mask=mask))
        for training in (True, False)
    ]
    trained, tested = ((output - signal)[:, 0, levels] for output in added)

    took_part = trained > 0.5
    np.testing.assert_allclose(np.mean(took_part, axis=0), survival, atol=0.04)
    np.testing.assert_allclose(tested, np.tile(survival, (4000, 1)), atol=1e-6)
    # And each sub-layer draws for itself.
    correlation = np.corrcoef(took_part.T) - np.eye(4)
    assert np.max(np.abs(correlation)) < 5 / np.sqrt(len(took_part))


def test_final_norm_normalises_each_position(x):
    layer = stack()

    output = ops.convert_to_numpy(layer(x, mask=MASK))

    np.testing.assert_allclose(output.mean(axis=2), 0.0, atol=1e-5)
    np.testing.assert_allclose(output.std(axis=2), 1.0, atol=1e-3)


def test_dropout_is_random_in_training_and_not_active_at_test(x):
    layer = stack(blocks=1, dropout=0.3)

    first, second = (
        ops.convert_to_numpy(layer(x, mask=MASK, training=True)) for _ in range(2)
    )
    third, fourth = (ops.convert_to_numpy(layer(x, mask=MASK)) for _ in range(2))

    assert np.any(first != second)
    np.testing.assert_array_equal(third, fourth)


@pytest.mark.parametrize(("survival", "training"), [(0.5, False), (1.0, True)])
def test_gradients_against_differences(
    x, rng, randomise, reference, check_gradients, survival, training
):
    layer = stack(blocks=1, convolutions=1, survival=survival)
    layer.build(x.shape)
    weights = randomise(layer)
    upstream = rng.normal(size=x.shape).astype("float32") * MASK[..., None]

    def function(x, weights):
        output = np.zeros(x.shape)
        for i, length in enumerate(LENGTHS):
            text = x[i, :length]
            output[i, :length] = reference.encoder(
                text, weights, 1, 1, 2, survival=survival
            )
        return output

    check_gradients(layer, function, x, weights, upstream, mask=MASK, training=training)


def test_convolutions_are_told_whether_it_is_training(x, monkeypatch):
    told = []

    def telling(function, training):
        told.append(training)
        return with_gradient(function, training)

    monkeypatch.setattr("qanet.layers.convolution.with_gradient", telling)
    layer = stack(blocks=1, convolutions=1)
    layer(x, mask=MASK)
    told.clear()
    layer(x, mask=MASK, training=True)
    layer(x, mask=MASK, training=False)
    assert told == [True, False]


def test_round_trip(x, check_round_trip):
    check_round_trip(stack(1, 1, 5, 4, 7, dropout=0.1, survival=0.8), x, mask=MASK)
    check_round_trip(stack(position_per_block=True, final_norm=False), x, mask=MASK)


def test_mixed_bfloat16(mixed_bfloat16, x, randomise, reference, compiled):
    layer = stack(blocks=1, dropout=0.1, survival=0.9)
    layer.build(x.shape)
    weights = randomise(layer, bound=0.5)

    trained = compiled(partial(layer, training=True))(x, mask=MASK)
    output = compiled(layer)(x, mask=MASK)

    assert ops.dtype(output) == "bfloat16"
    assert np.all(np.isfinite(ops.convert_to_numpy(trained).astype("float32")))
    actual = ops.convert_to_numpy(output)[0].astype("float64")
    text = x[0].astype("float64")
    expected = reference.encoder(text, weights, 1, 2, 2, survival=0.9)
    np.testing.assert_allclose(actual, expected, atol=0.1)


def test_the_sum_of_the_sub_layers_is_not_in_half_precision(
    mixed_bfloat16, x, randomise, reference
):
    """Beside 1000, bfloat16 has no smaller step than 4."""
    layer = stack(blocks=3)
    layer.build(x.shape)
    weights = randomise(layer, bound=0.5)

    output = layer(x + 1000, mask=MASK)

    assert ops.dtype(output) == "bfloat16"
    text = x[0].astype("float64") + 1000
    expected = reference.encoder(text, weights, 3, 2, 2)
    actual = ops.convert_to_numpy(output)[0].astype("float64")
    np.testing.assert_allclose(actual, expected, atol=0.2)
