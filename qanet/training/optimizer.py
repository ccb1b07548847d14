"""Adam with warm-up, weight decay on matrices, and averaged weights.

QANet, section 4.1: "We use the ADAM optimizer with beta_1 = 0.8, beta_2 = 0.999,
epsilon = 1e-7", a warm-up over the first 1000 steps, L2 of 3e-7 and an exponential
moving average with decay 0.9999 on all trainable variables.
"""

import contextlib
import math
from collections.abc import Iterator

import keras
from keras import ops

from qanet.config import TrainingConfig

# The share of the steps over which a trapezoid falls to zero.
FALLING = 0.25


class LearningRate(keras.optimizers.schedules.LearningRateSchedule):
    """Warm-up from above zero to the full rate, then what `training.decay` says.

    Args:
        config: gives the rate, the shapes of warm-up and decay, and the steps.
    """

    def __init__(self, config: TrainingConfig):
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
        elif config.decay == "trapezoid":
            left = (config.steps + 1.0 - step) / (config.steps * FALLING)
            rate = rate * ops.clip(left, 0.0, 1.0)
        return rate

    def get_config(self):
        return {"config": self.config.model_dump()}


class AveragedAdam(keras.optimizers.Adam):
    """Adam that keeps an exponential moving average of the weights.

    The decay rises as (1 + t) / (10 + t) until it reaches its bound, so that the
    random start is soon forgotten.

    Args:
        config: gives all constants.

    Attributes:
        gradient_norm: float32 scalar variable, the global norm of the last step's
            gradient before it was clipped.
    """

    def __init__(self, config: TrainingConfig):
        super().__init__(
            learning_rate=LearningRate(config),
            beta_1=config.beta_1,
            beta_2=config.beta_2,
            epsilon=config.epsilon,
            global_clipnorm=config.clip_norm,
            use_ema=True,
        )
        self.ema_bound = config.ema_decay

    @property
    def ema_momentum(self):
        """The decay of the step that is being taken."""
        step = ops.cast(self.iterations, "float32")
        return ops.minimum(self.ema_bound, (1.0 + step) / (10.0 + step))

    @ema_momentum.setter
    def ema_momentum(self, value):
        """Ignored: Keras sets its constant here, ours depends on the step."""

    def build(self, variables):
        """Makes the optimizer's own variables."""
        super().build(variables)
        self.gradient_norm = self.add_variable(
            shape=(), dtype="float32", initializer="zeros", name="gradient_norm"
        )

    def apply(self, grads, trainable_variables=None):
        """Takes a step, and notes the norm of its gradient."""
        grads = _summed_over_replicas(grads)
        super().apply(grads, trainable_variables)
        squares = [ops.sum(ops.square(g)) for g in grads if g is not None]
        self.gradient_norm.assign(ops.sqrt(sum(squares)))

    def _all_reduce_sum_gradients(self, grads_and_vars):
        """Nothing is left to do: `apply` has summed the gradients, because Keras sums
        them after clipping, which would clip each replica's share by itself."""
        return grads_and_vars

    def finalize_variable_values(self, var_list):
        """Does nothing. Keras would put the averages in the place of the weights at
        the end of every `fit`, and each of our rounds is one."""

    def assign_averages(self, variables):
        """Puts copies of the averages in the place of the variables' values."""
        averages = self._model_variables_moving_average
        for variable, average in zip(variables, averages, strict=True):
            # Through NumPy: on JAX the two would otherwise share one buffer, which
            # the next step gives away.
            variable.assign(ops.convert_to_numpy(average))


def _summed_over_replicas(grads: list) -> list:
    """Gradients of the global batch, from each replica's share of them."""
    if keras.backend.backend() != "tensorflow":
        return grads
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, grads)


@contextlib.contextmanager
def averaged_weights(model: keras.Model) -> Iterator[None]:
    """Within this context the model has its averaged weights.

    Args:
        model: compiled with `AveragedAdam`.
    """
    variables = model.trainable_variables
    raw = [ops.convert_to_numpy(variable) for variable in variables]
    model.optimizer.assign_averages(variables)
    try:
        yield
    finally:
        for variable, value in zip(variables, raw, strict=True):
            variable.assign(value)


def regularise(model: keras.Model, l2: float) -> None:
    """Adds l2 / 2 * ||w||² of every matrix to the loss.

    Vectors (biases, norm scales) are left alone: penalising them costs accuracy.
    """
    for variable in model.trainable_variables:
        if len(variable.shape) > 1:
            variable.regularizer = keras.regularizers.L2(l2 / 2)
