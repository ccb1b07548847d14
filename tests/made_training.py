"""A training of a few numbers, for tests of what trains."""

from functools import partial
from types import SimpleNamespace

import keras
import numpy as np
from keras import ops

from qanet.config import TrainingConfig
from qanet.datasets.plans import PlannedBatch
from qanet.learning_config import DistributionConfig
from qanet.training.distribution import make_distribution
from qanet.training.learner import Learner


def small_model(outputs=2):
    """Three numbers in, a matrix and a vector between, and numbers out."""
    keras.utils.set_random_seed(3)
    x = keras.Input((3,), name="x")
    return keras.Model({"x": x}, {"y": keras.layers.Dense(outputs)(x)})


def mean_squared_error(targets, outputs):
    return ops.mean(ops.square(outputs["y"] - targets["y"]))


def small_learner(model=None, loss=mean_squared_error, **settings):
    defaults = {
        "warmup_steps": 0,
        "decay": "constant",
        "learning_rate": 0.1,
        "clip_norm": 1e9,
        "l2": 0.0,
    }
    config = TrainingConfig(**(defaults | settings))
    return Learner(model or small_model(), loss, config)


def batches(count, outputs=2):
    """Four examples each."""
    random = np.random.default_rng(0)
    return [
        (random.normal(size=(4, 3)), random.normal(size=(4, outputs)))
        for _ in range(count)
    ]


def take_steps(learner, some, distribution=None):
    """Trains on batches of arrays; gives the loss and the norm of each step."""
    return train_on(
        learner,
        [
            ({"x": np.asarray(x, "float32")}, {"y": np.asarray(y, "float32")})
            for x, y in some
        ],
        distribution,
    )


def train_on(learner, some, distribution=None):
    """Trains on inputs and targets; gives the loss and the norm of each step."""

    def taken(part, batch):
        arrays = some[batch.context_length][part]
        return {name: array[batch.items] for name, array in arrays.items()}

    maker = SimpleNamespace(inputs=partial(taken, 0), targets=partial(taken, 1))
    rows = [len(next(iter(inputs.values()))) for inputs, _ in some]
    plan = [PlannedBatch(np.arange(count), i, 0) for i, count in enumerate(rows)]
    if distribution:
        train = distribution.training(learner, size=None)
    else:
        # Compiled once, however often it is trained on.
        if not hasattr(learner, "train_alone"):
            alone = make_distribution(DistributionConfig())
            learner.train_alone = alone.training(learner, size=None)
        train = learner.train_alone
    return [
        tuple(float(ops.convert_to_numpy(scalar)) for scalar in told)
        for told in train(maker, plan)
    ]
