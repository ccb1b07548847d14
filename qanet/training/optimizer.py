"""The optimizer and its rate.

QANet, section 4.1: "We use the ADAM optimizer with beta_1 = 0.8, beta_2 = 0.999,
epsilon = 1e-7", a warm-up over the first 1000 steps, and an exponential moving average
with decay 0.9999 on all trainable variables.
"""

import math

import keras
from keras import ops

from qanet.config import LearningConfig

# The share of the steps over which a rate falls to zero on a straight line.
FALLING = {"trapezoid": 0.25, "linear": 1.0}


class LearningRate(keras.optimizers.schedules.LearningRateSchedule):
    """Warm-up from above zero to the full rate, then what `training.decay` says.

    Args:
        config: gives the rate, the shapes of warm-up and decay, and the steps.

    Attributes:
        numbers: the full rate, the steps of the warm-up and all steps, float32
            scalars. As variables they are no constants of a compiled step, which so
            serves a training of another length too.
    """

    def __init__(self, config: LearningConfig):
        self.config = config
        self.numbers = [
            keras.Variable(
                float(number),
                dtype="float32",
                trainable=False,
                aggregation="only_first_replica",
            )
            for number in (config.learning_rate, config.warmup_steps, config.steps)
        ]

    def __call__(self, iteration):
        """The rate of the step after `iteration` finished ones, a float32 scalar."""
        decay = self.config.decay
        full, warmup, steps = map(ops.convert_to_tensor, self.numbers)
        step = ops.cast(iteration, "float32") + 1.0
        rising = ops.maximum(warmup, 1.0)
        if self.config.warmup == "linear":
            share = step / rising
        else:
            share = ops.log(step + 1.0) / ops.log(rising + 1.0)
        rate = full * ops.minimum(share, 1.0)
        if decay == "cosine":
            left = ops.maximum(steps - warmup, 1.0)
            done = ops.clip((step - rising) / left, 0.0, 1.0)
            rate = rate * 0.5 * (1.0 + ops.cos(math.pi * done))
        elif decay in FALLING:
            falling = (steps + 1.0 - step) / (FALLING[decay] * steps)
            rate = rate * ops.clip(falling, 0.0, 1.0)
        return rate

    def get_config(self):
        return {"config": self.config.model_dump()}


def make_optimizer(
    config: LearningConfig, rate: LearningRate
) -> keras.optimizers.Optimizer:
    """The optimizer that `training.optimizer` names, with its constants.

    It neither clips nor averages: see `qanet.training.learner`.
    """
    epsilon = config.epsilon
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
