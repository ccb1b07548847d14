"""Tests of qanet.layers.dropout."""

import keras
import numpy as np
import pytest
from keras import ops

from qanet.layers.dropout import Dropout

SHAPE = (16, 40, 32)
COUNT = 16 * 40 * 32


def kept(layer, shape=SHAPE):
    """Which elements the layer keeps at its next training step."""
    output = layer(np.ones(shape, "float32"), training=True)
    return ops.convert_to_numpy(output) != 0


def highest_correlation(a, b):
    """The largest correlation of two sequences of decisions over all shifts.

    In units of the standard deviation that independent decisions have; among 20 000
    shifts of such, one above 6 is a matter of one in 50 000.
    """
    x, y = (np.ravel(decisions) - np.mean(decisions) for decisions in (a, b))
    products = np.fft.irfft(np.fft.rfft(x) * np.conj(np.fft.rfft(y)), len(x))
    products /= np.std(x) * np.std(y) * np.sqrt(len(x))
    # A sequence is compared with itself at all shifts but none.
    return np.max(np.abs(products[1:] if a is b else products))


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.5, 0.9])
def test_share_of_dropped_elements_is_the_rate(rate):
    share = 1.0 - np.mean(kept(Dropout(rate, seed=1)))

    assert abs(share - rate) < 5 * np.sqrt(rate * (1 - rate) / COUNT)


def test_a_rate_that_is_nearly_one_drops_all():
    assert not np.any(kept(Dropout(1 - 1e-12, seed=1)))


def test_kept_elements_are_scaled_up_and_the_others_zero(rng):
    x = rng.normal(size=SHAPE).astype("float32")

    y = ops.convert_to_numpy(Dropout(0.2, seed=1)(x, training=True))

    scaled = np.isclose(y, x / 0.8, rtol=1e-6)
    assert np.all(scaled | (y == 0.0))
    assert 0.7 < np.mean(scaled) < 0.9


@pytest.mark.parametrize(("rate", "training"), [(0.5, False), (0.5, None), (0.0, True)])
def test_not_active_at_test_nor_at_rate_0(rate, training, rng):
    x = rng.normal(size=(2, 3, 4)).astype("float32")

    y = Dropout(rate, seed=1)(x, training=training)

    np.testing.assert_array_equal(ops.convert_to_numpy(y), x)


def test_positions_are_independent():
    mask = kept(Dropout(0.3, seed=1))

    assert highest_correlation(mask, mask) < 6


def test_steps_are_independent_and_not_shifts_of_one_another():
    layer = Dropout(0.3, seed=1)
    masks = [kept(layer) for _ in range(6)]

    for i, mask in enumerate(masks):
        for later in masks[i + 1 :]:
            assert highest_correlation(mask, later) < 6.5


def test_neighbouring_seeds_are_independent():
    masks = [kept(Dropout(0.3, seed=seed)) for seed in range(6)]

    for i, mask in enumerate(masks):
        for other in masks[i + 1 :]:
            assert highest_correlation(mask, other) < 6.5


def test_few_decisions_a_step_are_independent_over_many_steps():
    layer = Dropout(0.5, seed=1)

    decisions = np.array([kept(layer, (8, 1, 1)) for _ in range(300)])

    assert abs(np.mean(decisions) - 0.5) < 5 * 0.5 / np.sqrt(decisions.size)
    assert highest_correlation(decisions, decisions) < 6


def test_a_seed_fixes_the_sequence():
    one, two = Dropout(0.3, seed=5), Dropout(0.3, seed=5)

    for _ in range(3):
        np.testing.assert_array_equal(kept(one), kept(two))


def test_layers_without_a_seed_follow_the_global_seed_and_differ():
    def masks():
        keras.utils.set_random_seed(3)
        return kept(Dropout(0.3)), kept(Dropout(0.3))

    first, again = masks(), masks()

    np.testing.assert_array_equal(first, again)
    assert highest_correlation(*first) < 6


def test_noise_follows_from_the_state_alone_so_that_compiling_does_not_freeze_it():
    layer = Dropout(0.5, seed=1)

    with keras.StatelessScope():
        first, second = kept(layer), kept(layer)
    again = kept(layer)

    np.testing.assert_array_equal(first, again)
    assert highest_correlation(first, second) < 6


def test_gradient_passes_where_the_output_passed(gradients, call_with):
    layer = Dropout(0.3, seed=1)
    x = np.ones((4, 5, 6), "float32")

    (gradient,) = gradients(
        lambda x: ops.sum(call_with(layer, [], x, training=True)), x
    )

    output = ops.convert_to_numpy(layer(x, training=True))
    np.testing.assert_allclose(gradient, output, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_keeps_dtype_and_decisions(dtype):
    x = ops.ones((4, 30, 6), dtype=dtype)

    y = Dropout(0.3, seed=1, dtype=dtype)(x, training=True)

    assert ops.dtype(y) == dtype
    y = ops.convert_to_numpy(y).astype("float32")
    np.testing.assert_array_equal(y != 0, kept(Dropout(0.3, seed=1), (4, 30, 6)))
    np.testing.assert_allclose(y[y != 0], 1 / 0.7, rtol=8e-3)


def test_round_trip_keeps_the_noise():
    layer = Dropout(0.3, seed=9)

    again = Dropout.from_config(layer.get_config())

    assert again.get_config() == layer.get_config()
    np.testing.assert_array_equal(kept(again), kept(layer))
