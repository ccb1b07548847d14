"""What the benchmarks of the model's speed have in common."""

import statistics
import time
from collections.abc import Callable

import keras
import numpy as np

from qanet.models.words import EmbeddingSizes

SIZES = EmbeddingSizes(
    rows=20_000, width=300, characters=200, characters_per_word=16, pretrained=True
)


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


def matrix_rate(
    size: int, dtype: str = "float32", least_seconds: float = 1.0, queued: int = 1
) -> float:
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
