"""What `accelerator.py` times: passes, steps and products of matrices."""

import contextlib
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial

import keras
import numpy as np
from keras import ops

from qanet.models.half_precision import around_products, is_half_on_processor
from qanet.models.words import EmbeddingSizes

SIZES = EmbeddingSizes(
    rows=20_000, width=300, characters=200, characters_per_word=16, pretrained=True
)
# Whose median is the figure.
GROUPS = 5

# Takes so many steps in turn and yields a result of each that is not waited for.
Steps = Callable[[int], Iterator]


def passes(model: keras.Model, inputs: dict[str, np.ndarray]) -> Steps:
    """Passes of the model as `qanet.models.prediction` compiles it, not waited for."""
    if keras.backend.backend() == "jax":
        import jax

        call = jax.jit(partial(model.stateless_call, training=False))

        def steps(count):
            groups = model.trainable_variables, model.non_trainable_variables
            state = [[variable.value for variable in group] for group in groups]
            for _ in range(count):
                yield call(*state, inputs)[0]
    else:
        import tensorflow as tf

        call = partial(model, training=False)
        if is_half_on_processor(model):
            call = tf.function(around_products(call))
        else:
            call = tf.function(call, jit_compile=True)

        def steps(count):
            for _ in range(count):
                yield call(inputs)

    return steps


def wait(result) -> None:
    """Waits until the device has computed a result."""
    keras.tree.map_structure(ops.convert_to_numpy, result)


def first_seconds(steps: Steps) -> float:
    """Seconds of the first step, compilation included."""
    begin = time.perf_counter()
    with contextlib.closing(steps(1)) as results:
        wait(next(results))
        return time.perf_counter() - begin


def step_seconds(steps: Steps, seconds: float) -> float:
    """Median seconds of a step, in groups that come to `seconds` together."""
    with contextlib.closing(steps(2)) as results:
        wait(next(results))
        begin = time.perf_counter()
        wait(next(results))
        guess = time.perf_counter() - begin
    count = max(1, round(seconds / GROUPS / guess))
    durations = []
    with contextlib.closing(steps(1 + GROUPS * count)) as results:
        wait(next(results))
        for _ in range(GROUPS):
            begin = time.perf_counter()
            for newest in itertools.islice(results, count):
                result = newest
            wait(result)
            durations.append((time.perf_counter() - begin) / count)
    return statistics.median(durations)


def median_seconds(call: Callable[[], object], least_seconds: float) -> float:
    """Median of the calls that fit into `least_seconds`, at least 5."""
    call()
    durations = []
    begin = time.perf_counter()
    while len(durations) < 5 or time.perf_counter() - begin < least_seconds:
        start = time.perf_counter()
        call()
        durations.append(time.perf_counter() - start)
    return statistics.median(durations)


def matrix_rate(size: int, dtype: str, least_seconds: float, queued: int) -> float:
    """GFLOP/s of a product of square matrices, as the backend computes it by default.

    Args:
        size: rows and columns.
        dtype: type of the factors and of the product.
        least_seconds: how long to look.
        queued: products that are started before the last of them is waited for.
    """
    x = np.random.default_rng(0).random((size, size), dtype=np.float32)
    x = keras.ops.cast(keras.ops.convert_to_tensor(x), dtype)

    def products():
        for _ in range(queued):
            product = keras.ops.matmul(x, x)
        # One number waits for all of them; the rest need not leave the device. NumPy
        # takes none in half precision from TensorFlow.
        return keras.ops.convert_to_numpy(keras.ops.cast(product[0, 0], "float32"))

    return queued * 2 * size**3 / median_seconds(products, least_seconds) / 1e9


def random_batch(batch: int, context: int, question: int) -> tuple[dict, dict]:
    """Inputs and targets of one shape, without padding."""
    rng = np.random.default_rng(0)
    inputs = {}
    for name, size in (("context", context), ("question", question)):
        shape = (batch, size)
        inputs[f"{name}_words"] = rng.integers(2, SIZES.rows, shape, dtype=np.int32)
        inputs[f"{name}_characters"] = rng.integers(
            2,
            SIZES.characters,
            (*shape, SIZES.characters_per_word),
            dtype=np.int32,
        )
    targets = {
        name: np.eye(context, dtype=np.float32)[rng.integers(0, context, batch)]
        for name in ("start_logits", "end_logits")
    }
    return inputs, targets
