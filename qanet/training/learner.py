"""What a training step on any backend is made of: loss, L2 penalty, clipping, update,
and the averages of the weights. The step itself is `replica_step` of `on_tensorflow`
and `step_of` of `on_jax`."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
from keras import ops

from qanet.learning_config import LearningConfig
from qanet.training.optimizer import make_optimizer

# From the targets and the model's outputs for a batch to a scalar, the mean of its
# examples.
Loss = Callable[[Any, Any], Any]


class Learner:
    """A model, what it learns from, and all that changes while it learns.

    Keras' own training step is not used: it clips each replica's share of a gradient by
    itself, and keeps averages for `fit` only, in ways that its versions change.

    Args:
        model: the model.
        loss: what is made small.
        config: optimizer, rate, clipping, penalty and averages.

    Attributes:
        averages: the exponential moving average of each trainable variable.
    """

    def __init__(self, model: keras.Model, loss: Loss, config: LearningConfig):
        self.model = model
        self.loss = loss
        self.config = config
        variables = model.trainable_variables
        self.optimizer = make_optimizer(config)
        if config.optimizer == "adamw":
            others = [v for v in variables if not _is_matrix(v)]
            self.optimizer.exclude_from_weight_decay(others)
        self.optimizer.build(variables)
        self.averages = [
            keras.Variable(
                # Through NumPy: on JAX the two would otherwise share one buffer, which
                # the first step gives away.
                ops.convert_to_numpy(variable),
                dtype=variable.dtype,
                trainable=False,
                name=variable.name,
                aggregation="only_first_replica",
            )
            for variable in variables
        ]

    @property
    def state(self) -> dict[str, keras.Variable]:
        """All that training changes, by name, for a checkpoint.

        The variables' paths will not do: Keras counts layers through, from model to
        model.
        """
        frozen = {id(variable) for variable in self.model.non_trainable_weights}
        groups = {
            "model": [v for v in self.model.variables if id(v) not in frozen],
            "optimizer": self.optimizer.variables,
            "averages": self.averages,
        }
        return {
            f"{group}/{i}/{variable.name}": variable
            for group, variables in groups.items()
            for i, variable in enumerate(variables)
        }

    def penalty(self, values: Sequence) -> Any:
        """l2 / 2 * ||w||² of every matrix; 0 without `training.l2`.

        Vectors (biases, norm scales) are left alone: penalising them costs accuracy.

        Args:
            values: those of the trainable variables.
        """
        if not self.config.l2:
            return 0.0
        squares = [
            ops.sum(ops.square(value))
            for variable, value in zip(
                self.model.trainable_variables, values, strict=True
            )
            if _is_matrix(variable)
        ]
        return self.config.l2 / 2 * sum(squares)

    def clipped(self, gradients: Sequence) -> tuple[list, Any]:
        """Gradients whose global norm is at most `training.clip_norm`.

        Returns:
            The gradients, and the norm before, a float32 scalar.
        """
        norm = ops.sqrt(sum(ops.sum(ops.square(gradient)) for gradient in gradients))
        factor = self.config.clip_norm / ops.maximum(norm, self.config.clip_norm)
        return [gradient * factor for gradient in gradients], norm

    def update(self, gradients: Sequence) -> None:
        """Takes a step along clipped gradients, and moves the averages.

        The decay of the averages rises as (1 + t) / (10 + t) until it reaches
        `training.ema_decay`, and the first step starts them: so the random weights of
        the start are soon forgotten.
        """
        step = ops.cast(self.optimizer.iterations, "float32")
        decay = ops.minimum(self.config.ema_decay, (1.0 + step) / (10.0 + step))
        decay = ops.where(step > 0, decay, 0.0)
        variables = self.model.trainable_variables
        self.optimizer.apply(gradients, variables)
        for variable, average in zip(variables, self.averages, strict=True):
            average.assign(decay * average + (1.0 - decay) * variable)

    @contextlib.contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """Within this context the model has its averaged weights."""
        variables = self.model.trainable_variables
        raw = [ops.convert_to_numpy(variable) for variable in variables]
        for variable, average in zip(variables, self.averages, strict=True):
            variable.assign(ops.convert_to_numpy(average))
        try:
            yield
        finally:
            for variable, value in zip(variables, raw, strict=True):
                variable.assign(value)

    @property
    def learning_rate(self) -> float:
        """The rate of the next step."""
        return float(ops.convert_to_numpy(self.optimizer.learning_rate))


def _is_matrix(variable: keras.Variable) -> bool:
    """Whether a weight is no bias, no scale and no vector; some have a row of each."""
    return len(variable.shape) > 1 and variable.name not in ("bias", "sentinels")
