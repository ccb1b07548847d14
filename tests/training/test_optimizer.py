"""Tests of qanet.training.optimizer against hand formulas."""

import math

import keras
import numpy as np
import pytest
from made_training import batches, small_learner, take_steps

from qanet.config import TrainingConfig
from qanet.training.optimizer import LearningRate, make_optimizer


def rates(count, **settings):
    """The rate of each of the first `count` steps."""
    schedule = LearningRate(TrainingConfig(**settings))
    return [float(schedule(iteration)) for iteration in range(count)]


@pytest.mark.parametrize("warmup", ["linear", "logarithmic"])
@pytest.mark.parametrize("warmup_steps", [0, 1, 1000])
def test_the_first_step_of_the_warm_up_has_a_rate(warmup, warmup_steps):
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


def test_linear_falls_from_the_first_step_to_zero():
    actual = rates(9, warmup_steps=2, steps=8, learning_rate=0.4, decay="linear")
    expected = [0.2, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0.0]
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-8)


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


@pytest.mark.parametrize("name", ["adam", "adamw", "adamax", "adadelta"])
def test_optimizers_by_name(name):
    config = TrainingConfig(optimizer=name, beta_1=0.7, beta_2=0.9, epsilon=1e-6)
    optimizer = make_optimizer(config)
    assert type(optimizer).__name__.lower() == name
    constants = optimizer.get_config()
    assert constants["epsilon"] == 1e-6
    if name == "adadelta":
        assert constants["rho"] == 0.9
    else:
        assert (constants["beta_1"], constants["beta_2"]) == (0.7, 0.9)
    assert isinstance(optimizer._learning_rate, LearningRate)


def test_optimizer_takes_the_rate_of_its_schedule():
    # Adam's first update has the size of the rate, whatever the gradient.
    learner = small_learner(warmup_steps=4, warmup="linear", learning_rate=0.2)
    before = learner.model.get_weights()
    take_steps(learner, batches(1))
    for old, new in zip(before, learner.model.get_weights(), strict=True):
        np.testing.assert_allclose(np.abs(new - old), 0.05, rtol=1e-3)


def test_weights_decay_under_adamw_and_biases_do_not():
    """Without a gradient a matrix loses the rate times the decay of itself."""
    learner = small_learner(
        loss=lambda targets, outputs: 0.0 * keras.ops.sum(outputs["y"]),
        optimizer="adamw",
        weight_decay=0.5,
    )
    kernel, bias = np.arange(6.0).reshape(3, 2), np.array([5.0, -7.0])
    learner.model.set_weights([kernel, bias])
    take_steps(learner, batches(1))
    found = learner.model.get_weights()
    np.testing.assert_allclose(found[0], (1 - 0.1 * 0.5) * kernel, rtol=1e-5)
    np.testing.assert_array_equal(found[1], bias)


def test_cosine_behind_a_warm_up_that_takes_all_steps():
    actual = rates(
        4, warmup="linear", warmup_steps=3, steps=3, decay="cosine", learning_rate=0.3
    )
    np.testing.assert_allclose(actual[:3], [0.1, 0.2, 0.3], rtol=1e-6)
    assert np.isfinite(actual).all()


def test_no_rate_is_below_zero():
    for decay in ("trapezoid", "linear", "cosine"):
        settings = {"warmup_steps": 2, "steps": 8, "decay": decay}
        assert rates(12, **settings)[8:] == [0.0] * 4, decay


def test_the_schedule_is_stored_with_its_settings():
    config = TrainingConfig(warmup_steps=7)
    assert LearningRate(config).get_config() == {"config": config.model_dump()}
