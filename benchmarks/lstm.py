"""Speed of the bidirectional LSTM beside those of Keras and PyTorch.

    python benchmarks/lstm.py --output benchmarks/results/lstm.json

Each reads batches of texts, alone and with the gradient of a sum to input and weights,
all of them in turn; PyTorch's takes part where it is installed.
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

from qanet.files import write_text
from qanet.layers.recurrent import BidirectionalLSTM

SHAPES = ((16, 144), (32, 160), (8, 400), (1, 160))
WIDTH, UNITS = 200, 100


def of_keras(
    layer: keras.layers.Layer, x: np.ndarray, mask: np.ndarray, compiled: bool
):
    """Calls of a layer in a graph: reading, and training."""
    x, mask = tf.constant(x), tf.constant(mask)
    layer(x, mask=mask)

    @tf.function(jit_compile=compiled)
    def read():
        return layer(x, mask=mask)

    @tf.function(jit_compile=compiled)
    def train():
        weights = [weight.value for weight in layer.trainable_variables]
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(layer(x, mask=mask))
        return tape.gradient(total, [x, *weights])

    return lambda: read().numpy(), lambda: [g.numpy() for g in train()]


def of_torch(x: np.ndarray, lengths: np.ndarray):
    """The same of PyTorch's, on packed sequences; or none without it."""
    try:
        import torch
    except ImportError:
        return None
    layer = torch.nn.LSTM(WIDTH, UNITS, batch_first=True, bidirectional=True)
    x = torch.tensor(x, requires_grad=True)
    packed = torch.nn.utils.rnn.pack_padded_sequence

    def call():
        return layer(packed(x, lengths, True, enforce_sorted=False))[0].data

    def read():
        with torch.inference_mode():
            return call()

    def train():
        return torch.autograd.grad(call().sum(), [x, *layer.parameters()])

    return read, train


def measure(batch: int, length: int, rounds: int) -> dict:
    """Examples/s of each at one shape, by the median."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(batch, length, WIDTH)).astype("float32")
    lengths = rng.integers(length * 3 // 4, length + 1, batch)
    mask = np.arange(length) < lengths[:, None]
    lstm = keras.layers.LSTM(UNITS, return_sequences=True)
    readers: dict[str, tuple[Callable, Callable] | None] = {
        "ours": of_keras(BidirectionalLSTM(UNITS), x, mask, compiled=True),
        "keras": of_keras(keras.layers.Bidirectional(lstm), x, mask, compiled=False),
        "torch": of_torch(x, lengths),
    }
    calls = {
        (name, mode): call
        for name, both in readers.items()
        if both
        for mode, call in zip(("reading", "training"), both, strict=True)
    }
    durations = {key: [] for key in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for key, call in calls.items():
            begin = time.perf_counter()
            call()
            durations[key].append(time.perf_counter() - begin)
    row = {"batch": batch, "length": length}
    for (name, mode), values in durations.items():
        row |= {f"{name}_{mode}": round(batch / statistics.median(values), 1)}
    return row


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    rows = [measure(*shape, options.rounds) for shape in SHAPES]
    for row in rows:
        print(row, flush=True)
    result = {
        "cores": len(os.sched_getaffinity(0)),
        "processor": platform.processor() or platform.machine(),
        "width": WIDTH,
        "units": UNITS,
        "examples_per_second": rows,
    }
    if options.output:
        write_text(options.output, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
