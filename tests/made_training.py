"""A training of a few numbers, for tests of what trains."""

from types import SimpleNamespace

import keras
import numpy as np
from keras import ops

from qanet.config import Config, TrainingConfig
from qanet.datasets.plans import PlannedBatch
from qanet.training.distribution import make_distribution
from qanet.training.learner import Learner


def small_model(seed=3):
    """Three numbers in, two out, a matrix and a vector between."""
    keras.utils.set_random_seed(seed)
    x = keras.Input((3,), name="x")
    return keras.Model({"x": x}, {"y": keras.layers.Dense(2)(x)})


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


def batches(count, seed=0):
    """Four examples each."""
    random = np.random.default_rng(seed)
    return [
        (random.normal(size=(4, 3)), random.normal(size=(4, 2))) for _ in range(count)
    ]


def take_steps(learner, some):
    """Trains on batches of arrays; gives the loss and the norm of each step."""
    some = [[np.asarray(array, "float32") for array in batch] for batch in some]
    maker = SimpleNamespace(
        inputs=lambda batch: {"x": some[batch.context_length][0]},
        targets=lambda batch: {"y": some[batch.context_length][1]},
    )
    plan = [PlannedBatch(np.arange(len(x)), i, 0) for i, (x, _) in enumerate(some)]
    train = make_distribution(Config()).training(learner)
    return [
        tuple(float(ops.convert_to_numpy(scalar)) for scalar in told)
        for told in train(maker, plan)
    ]
