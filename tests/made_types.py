"""Dropout of whole types, for tests of the layers that have it."""

import keras
import numpy as np
from keras import ops

from qanet.layers.dropout import drop_types
from qanet.layers.step_seed import StepSeed

SEED = np.array([3, 1], "uint32")


def scales_of_types(layer, count):
    """The factor, 0 or 2 at rate 0.5, of each of the first types under `SEED`."""
    scales = drop_types(ops.ones((count, 1)), ops.arange(count), 0.5, SEED)
    scales = ops.convert_to_numpy(scales)
    assert set(scales[1:].ravel().tolist()) == {0.0, 2.0}
    return scales


def check_compiled_steps(layer, rows):
    """In one step two texts lose the same types, in the next step others."""
    keras.utils.set_random_seed(5)
    x = keras.Input(rows, dtype="int32")
    seed = StepSeed()(x)
    one, two = layer(x, seed), layer(x[:, ::-1], seed)[:, ::-1]
    model = keras.Model(x, {"text": one, "difference": one - two})
    losses = {"text": "mse", "difference": "mse"}
    model.compile(keras.optimizers.SGD(0.0), losses, jit_compile=True)
    numbers = np.arange(2 * 99).reshape(2, *rows) + 2
    zeros = np.zeros((2, 99, layer.compute_output_shape((1, *rows))[-1]))
    targets = {"text": zeros, "difference": zeros}

    logs = [model.train_on_batch(numbers, targets, return_dict=True) for _ in "123"]

    assert all(step["difference_loss"] == 0.0 for step in logs)
    assert len({float(step["text_loss"]) for step in logs}) == 3
