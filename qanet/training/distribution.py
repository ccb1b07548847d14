"""The devices of a training: on one, on several, or on several machines.

Whatever the strategy, `training.batch_size` is the global batch: each replica computes
its share of every batch, and all take the step of the whole. Noise depends on the
position in the global batch, so it does not depend on the number of replicas either.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import keras

from qanet.datasets.batches import Maker
from qanet.datasets.plans import PlannedBatch
from qanet.errors import UserError
from qanet.learning_config import DistributionConfig
from qanet.training.learner import Learner
from qanet.training.shares import Arrays

# Trains on the batches of a plan in turn, with a maker of one kind at all calls. Yields
# the loss of each step and the norm of its gradient before clipping, scalars of the
# backend that are not waited for.
Training = Callable[[Maker, Sequence[PlannedBatch]], Iterator[tuple[Any, Any]]]


class Distribution(Protocol):
    """The devices that a training computes on.

    Attributes:
        replicas: copies of the model that share a batch.
        is_chief: whether this process writes the run directory.
    """

    replicas: int
    is_chief: bool

    def scope(self) -> contextlib.AbstractContextManager:
        """The context in which everything is made and run."""

    def training(self, learner: Learner, size: int | None) -> Training:
        """What trains a learner that was made within the scope.

        Args:
            learner: the learner.
            size: examples of every batch that it will ever be given, over all
                replicas; `None` where they differ. TensorFlow traces the step for that.
        """

    def predictor(self, model: keras.Model) -> Callable[[Arrays], Arrays]:
        """A function from a batch of inputs to the model's outputs."""


def make_distribution(config: DistributionConfig) -> Distribution:
    """The devices that the configuration asks for.

    To be called before anything else computes: TensorFlow connects its workers first.

    Raises:
        UserError: Keras has another backend, or there are no such devices.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        from qanet.training.on_tensorflow import distribute
    elif backend == "jax":
        from qanet.training.on_jax import distribute
    else:
        raise UserError(
            f"KERAS_BACKEND={backend}: trains on tensorflow or jax; set one of them"
        )
    return distribute(config.strategy)


def check_share(size: int, distribution: Distribution) -> None:
    """Raises `UserError` where the replicas cannot share so many examples a step."""
    replicas = distribution.replicas
    if size % replicas:
        raise UserError(
            f"training.batch_size={size}: {replicas} replicas cannot share it; "
            f"give a multiple of {replicas}"
        )
