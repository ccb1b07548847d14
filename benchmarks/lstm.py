"""Speed of the bidirectional LSTM beside those of Keras and PyTorch.

    python benchmarks/lstm.py --output benchmarks/results/lstm.json
    KERAS_BACKEND=jax python benchmarks/lstm.py --output gpu.json

Each reads batches of texts, alone and with the gradient of a sum to input and weights,
all of them in turn; PyTorch's takes part where it is installed. Where JAX computes on
an NVIDIA GPU, so does PyTorch, by cuDNN's kernel. On TensorFlow it is for a processor.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# PyTorch needs memory of the same GPU.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import keras
import numpy as np
from machine import machine, processor

from qanet.files import write_text
from qanet.layers.bidirectional_lstm import BidirectionalLSTM

SHAPES = ((16, 144), (32, 160), (8, 400), (1, 160))
WIDTH, UNITS = 200, 100


def of_keras(
    layer: keras.layers.Layer, x: np.ndarray, mask: np.ndarray, compiled: bool
):
    """Calls of a layer: reading, and training.

    Args:
        compiled: whether XLA compiles it on TensorFlow; on JAX it does.
    """
    layer(x, mask=mask)
    if keras.backend.backend() == "jax":
        return of_jax(layer, x, mask)
    import tensorflow as tf

    x, mask = tf.constant(x), tf.constant(mask)

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


def of_jax(layer: keras.layers.Layer, x: np.ndarray, mask: np.ndarray):
    """Calls of a layer on JAX."""
    import jax

    inputs = jax.device_put((x, mask))
    weights, others = (
        [variable.value for variable in group]
        for group in (layer.trainable_variables, layer.non_trainable_variables)
    )

    def outputs(weights, x, mask):
        return layer.stateless_call(weights, others, x, mask=mask)[0]

    read = jax.jit(outputs)
    train = jax.jit(jax.grad(lambda *arguments: outputs(*arguments).sum(), (0, 1)))
    return (
        lambda: jax.block_until_ready(read(weights, *inputs)),
        lambda: jax.block_until_ready(train(weights, *inputs)),
    )


def of_torch(x: np.ndarray, lengths: np.ndarray):
    """The same of PyTorch's, on packed sequences; or none without it."""
    try:
        import torch
    except ImportError:
        return None
    device = "cuda" if gpu_name() else "cpu"
    layer = torch.nn.LSTM(WIDTH, UNITS, batch_first=True, bidirectional=True).to(device)
    x = torch.tensor(x, requires_grad=True, device=device)
    packed = torch.nn.utils.rnn.pack_padded_sequence

    def wait():
        if device == "cuda":
            torch.cuda.synchronize()

    def call():
        return layer(packed(x, lengths, True, enforce_sorted=False))[0].data

    def read():
        with torch.inference_mode():
            call()
        wait()

    def train():
        torch.autograd.grad(call().sum(), [x, *layer.parameters()])
        wait()

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
    row = {"batch": batch, "length": length}
    for (name, mode), seconds in in_turns(calls, rounds).items():
        row |= {f"{name}_{mode}": round(batch / seconds, 1)}
    return row


def in_turns(calls: dict[tuple, Callable], rounds: int) -> dict[tuple, float]:
    """Median seconds of each call, all of them once in every round."""
    for call in calls.values():
        call()
    durations = {key: [] for key in calls}
    for _ in range(rounds):
        for key, call in calls.items():
            begin = time.perf_counter()
            call()
            durations[key].append(time.perf_counter() - begin)
    return {key: statistics.median(values) for key, values in durations.items()}


def gpu_name() -> str | None:
    """The GPU that computes ours, where one does."""
    if keras.backend.backend() != "jax":
        return None
    import jax

    return jax.devices()[0].device_kind if jax.default_backend() == "gpu" else None


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
        "backend": keras.backend.backend(),
        "device": gpu_name() or processor(),
        **machine(),
        "width": WIDTH,
        "units": UNITS,
        "examples_per_second": rows,
    }
    if options.output:
        write_text(options.output, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
