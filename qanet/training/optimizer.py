"""The optimizer and its rate.

QANet, section 4.1: Adam with beta_1 = 0.8, beta_2 = 0.999 and epsilon = 1e-7, a warm-up
over the first 1000 steps, and an exponential moving average with decay 0.9999 on all
trainable variables.
"""

import math

import keras
from keras import ops

from qanet.learning_config import LearningConfig

# The share of the steps over which a rate falls to zero on a straight line.
FALLING = {"trapezoid": 0.25, "linear": 1.0}


class LearningRate(keras.optimizers.schedules.LearningRateSchedule):
    """Warm-up from above zero to the full rate, then what `training.decay` says.

    Under `cosine` that of the last step is zero, so that it moves the average alone.

    Args:
        config: gives the rate, the shapes of warm-up and decay, and the steps.
    """

    def __init__(self, config: LearningConfig):
        self.config = config

    def __call__(self, iteration):
        """The rate of the step after `iteration` finished ones, a float32 scalar."""
        config = self.config
        step = ops.cast(iteration, "float32") + 1.0
        warmup = float(max(config.warmup_steps, 1))
        if config.warmup == "linear":
            share = step / warmup
        else:
            share = ops.log(step + 1.0) / math.log(warmup + 1.0)
        rate = config.learning_rate * ops.minimum(share, 1.0)
        if config.decay == "cosine":
            left = max(config.steps - config.warmup_steps, 1)
            done = ops.clip((step - warmup) / left, 0.0, 1.0)
            rate = rate * 0.5 * (1.0 + ops.cos(math.pi * done))
        elif config.decay in FALLING:
            falling = (config.steps + 1.0 - step) / (
                FALLING[config.decay] * config.steps
            )
            rate = rate * ops.clip(falling, 0.0, 1.0)
        return rate

    def get_config(self):
        return {"config": self.config.model_dump()}


def make_optimizer(config: LearningConfig) -> keras.optimizers.Optimizer:
    """The optimizer that `training.optimizer` names, with its rate and constants.

    It neither clips nor averages: see `qanet.training.learner`.
    """
    rate, epsilon = LearningRate(config), config.epsilon
    if config.optimizer == "adadelta":
        return keras.optimizers.Adadelta(rate, rho=config.beta_2, epsilon=epsilon)
    constants = {
        "beta_1": config.beta_1,
        "beta_2": config.beta_2,
        "epsilon": epsilon,
    }
    if config.optimizer == "adamax":
        return keras.optimizers.Adamax(rate, **constants)
    if config.optimizer == "adamw":
        return keras.optimizers.AdamW(
            rate, weight_decay=config.weight_decay, **constants
        )
    return keras.optimizers.Adam(rate, **constants)
