"""Tests of qanet.training.optimizer against hand formulas and NumPy loops."""

import math

import keras
import numpy as np
import pytest
from keras import ops

from qanet.config import TrainingConfig
from qanet.training.optimizer import (
    AveragedAdam,
    LearningRate,
    averaged_weights,
    regularise,
)


def rates(count, **settings):
    """The rate of each of the first `count` steps."""
    schedule = LearningRate(TrainingConfig(**settings))
    return [float(schedule(iteration)) for iteration in range(count)]


def small_model(seed=3):
    """Three numbers in, two out, a matrix and a vector between."""
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])


def compiled_model(**settings):
    model = small_model()
    defaults = {"warmup_steps": 0, "decay": "constant", "learning_rate": 0.1}
    config = TrainingConfig(**(defaults | settings))
    model.compile(optimizer=AveragedAdam(config), loss="mse")
    return model


def batches(count):
    random = np.random.default_rng(0)
    return [
        (random.normal(size=(4, 3)), random.normal(size=(4, 2))) for _ in range(count)
    ]


def test_gradient_norm_is_that_before_clipping():
    model = compiled_model(clip_norm=0.01)
    ((x, y),) = batches(1)
    kernel, bias = model.get_weights()
    error = 2 * (x @ kernel + bias - y) / y.size
    gradient = np.concatenate([(x.T @ error).ravel(), error.sum(axis=0)])

    model.train_on_batch(x, y)

    norm = float(model.optimizer.gradient_norm)
    assert norm == pytest.approx(np.linalg.norm(gradient), rel=1e-5)
    assert norm > 0.01


def averages_of(model):
    with averaged_weights(model):
        return model.get_weights()


@pytest.mark.parametrize("warmup", ["linear", "logarithmic"])
@pytest.mark.parametrize("warmup_steps", [0, 1, 1000])
def test_warm_up_rate_exactly_zero_on_the_first_step(warmup, warmup_steps):
    (first,) = rates(1, warmup=warmup, warmup_steps=warmup_steps)
    assert first > 0


def test_linear_warm_up_rises_by_equal_steps_to_the_full_rate():
    actual = rates(
        6, warmup="linear", warmup_steps=4, learning_rate=0.2, decay="constant"
    )
    np.testing.assert_allclose(actual, [0.05, 0.1, 0.15, 0.2, 0.2, 0.2], rtol=1e-6)


def test_logarithmic_warm_up_follows_the_logarithm_to_the_full_rate():
    actual = rates(
        9, warmup="logarithmic", warmup_steps=7, learning_rate=0.3, decay="constant"
    )
    # log 2, log 3, ..., log 8 in units of log 8 = 3 log 2.
    expected = [0.3 * math.log2(step + 1) / 3 for step in range(1, 8)] + [0.3, 0.3]
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_trapezoid_keeps_the_rate_for_three_quarters_and_falls_to_zero():
    actual = rates(9, warmup_steps=2, steps=8, learning_rate=0.4, decay="trapezoid")
    # The last two of eight steps; a step beyond the last would have none.
    expected = [0.2, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.2, 0.0]
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_constant_rate_stays_after_warm_up():
    schedule = LearningRate(
        TrainingConfig(warmup_steps=10, steps=100, decay="constant", learning_rate=0.5)
    )
    for iteration in (9, 50, 99, 100_000):
        assert float(schedule(iteration)) == 0.5


def test_cosine_falls_from_the_full_rate_to_zero_at_the_last_step():
    actual = rates(8, warmup_steps=2, steps=6, decay="cosine", learning_rate=0.4)
    quarter = math.cos(math.pi / 4)
    falling = [0.2 * (1 + quarter), 0.2, 0.2 * (1 - quarter), 0.0]
    np.testing.assert_allclose(actual, [0.2, 0.4, *falling, 0, 0], atol=1e-7)


def test_ema_decay_used_as_decay_of_the_learning_rate():
    settings = {"warmup_steps": 0, "decay": "constant", "learning_rate": 0.5}
    assert rates(3, ema_decay=0.5, **settings) == [0.5, 0.5, 0.5]


def test_optimizer_takes_the_rate_of_its_schedule():
    # Adam's first update has the size of the rate, whatever the gradient.
    model = compiled_model(
        warmup_steps=4, warmup="linear", learning_rate=0.2, clip_norm=1e9
    )
    before = model.get_weights()
    model.train_on_batch(*batches(1)[0])
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_allclose(np.abs(new - old), 0.05, rtol=1e-3)


def test_gradient_is_clipped_by_its_global_norm():
    # With such an epsilon the first update is rate * gradient / epsilon.
    settings = {"beta_2": 0.0, "epsilon": 1e4, "learning_rate": 1e4}
    x, y = batches(1)[0]
    updates = {}
    for norm in (1e9, 0.01):
        model = compiled_model(clip_norm=norm, **settings)
        before = model.get_weights()
        model.train_on_batch(x, y)
        updates[norm] = np.concatenate(
            [
                (new - old).ravel()
                for old, new in zip(before, model.get_weights(), strict=True)
            ]
        )
    free, clipped = updates[1e9], updates[0.01]
    assert np.linalg.norm(free) > 0.1
    assert np.linalg.norm(clipped) == pytest.approx(0.01, rel=1e-2)
    np.testing.assert_allclose(
        clipped / np.linalg.norm(clipped), free / np.linalg.norm(free), atol=1e-3
    )


@pytest.mark.parametrize("bound", [0.25, 0.9999])
def test_average_follows_the_loop_with_the_rising_decay(bound):
    model = compiled_model(ema_decay=bound)
    expected = None
    for t, (x, y) in enumerate(batches(8)):
        model.train_on_batch(x, y)
        raw = model.get_weights()
        if t == 0:
            expected = raw
        decay = min(bound, (1 + t) / (10 + t))
        expected = [
            decay * average + (1 - decay) * weight
            for average, weight in zip(expected, raw, strict=True)
        ]
        for actual, wanted in zip(averages_of(model), expected, strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-6)


def test_ema_updated_before_the_optimizer_step():
    model = compiled_model(ema_decay=0.5)
    start = model.get_weights()
    model.train_on_batch(*batches(1)[0])
    for initial, raw, average in zip(
        start, model.get_weights(), averages_of(model), strict=True
    ):
        assert not np.allclose(average, initial)
        np.testing.assert_allclose(average, raw, rtol=1e-6)


def test_fit_puts_the_averages_in_the_place_of_the_weights():
    # Keras does that at the end of every fit, and training is a fit per evaluation.
    x = np.concatenate([x for x, _ in batches(3)])
    y = np.concatenate([y for _, y in batches(3)])
    stepped, fitted = compiled_model(), compiled_model()
    for first in range(0, 12, 4):
        stepped.train_on_batch(x[first : first + 4], y[first : first + 4])
    fitted.fit(x, y, batch_size=4, shuffle=False, verbose=0)
    for expected, actual, average in zip(
        stepped.get_weights(), fitted.get_weights(), averages_of(fitted), strict=True
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-5)
        assert not np.allclose(actual, average)


def test_averaged_weights_swaps_and_restores():
    model = compiled_model()
    for x, y in batches(3):
        model.train_on_batch(x, y)
    raw = model.get_weights()
    with averaged_weights(model):
        inside = model.get_weights()
        x = batches(1)[0][0]
        kernel, bias = inside
        np.testing.assert_allclose(
            model.predict_on_batch(x), x @ kernel + bias, rtol=1e-4
        )
    assert not np.allclose(inside[0], raw[0])
    for before, after in zip(raw, model.get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)


def test_averaged_weights_restores_after_an_exception():
    model = compiled_model()
    for x, y in batches(3):
        model.train_on_batch(x, y)
    raw = model.get_weights()
    with pytest.raises(RuntimeError, match="stop"), averaged_weights(model):
        raise RuntimeError("stop")
    for before, after in zip(raw, model.get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)


def test_training_goes_on_as_if_the_averages_had_never_been_looked_at():
    looked, alone = compiled_model(), compiled_model()
    for x, y in batches(4):
        looked.train_on_batch(x, y)
        averages_of(looked)
        alone.train_on_batch(x, y)
    for one, other in zip(looked.get_weights(), alone.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def regularised_model(l2):
    model = small_model()
    kernel, bias = np.arange(6.0).reshape(3, 2) - 2, np.array([5.0, -7.0])
    model.set_weights([kernel, bias])
    regularise(model, l2)
    return model, kernel, bias


def test_l2_on_biases_and_norm_scales():
    model = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(2), keras.layers.LayerNormalization()]
    )
    kernel = np.arange(6.0).reshape(3, 2)
    vectors = [np.array(vector) for vector in ([5.0, -7.0], [11.0, 13.0], [17.0, 19.0])]
    model.set_weights([kernel, *vectors])
    regularise(model, 0.1)
    # 0.1 / 2 * (0 + 1 + 4 + 9 + 16 + 25)
    assert float(sum(model.losses)) == pytest.approx(2.75)


def test_l2_as_a_no_op_regulariser():
    """The loss that is trained on holds the penalty, once."""
    x, y = batches(1)[0]
    losses = {}
    for l2 in (0.0, 0.3):
        model, kernel, _ = regularised_model(l2)
        model.compile(optimizer=keras.optimizers.SGD(0.0), loss="mse")
        losses[l2] = float(model.train_on_batch(x, y))
    penalty = 0.3 / 2 * np.square(kernel).sum()
    assert losses[0.3] - losses[0.0] == pytest.approx(penalty, rel=1e-4)


def test_l2_applied_to_the_regularisation_losses():
    """The gradient of the penalty is l2 * w: a step of 1 along it leaves (1 - l2) w."""
    model, kernel, bias = regularised_model(0.3)
    model.compile(
        optimizer=keras.optimizers.SGD(1.0),
        loss=lambda target, output: 0.0 * ops.sum(output),
    )
    model.train_on_batch(*batches(1)[0])
    np.testing.assert_allclose(model.get_weights()[0], 0.7 * kernel, rtol=1e-5)
    np.testing.assert_array_equal(model.get_weights()[1], bias)
