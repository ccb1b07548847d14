"""Rates at which libraries multiply matrices on this processor.

    python benchmarks/products.py [--libraries tensorflow jax torch] [--output FILE]

For each library that is installed, for float32 and bfloat16, it prints the GFLOP/s of
two large square matrices, and of the products of preset `qanet` for 16 contexts of 144
tokens: those of a convolution and of the four parts of the attended context. Medians of
12 groups of 5 products. `tensorflow-xla` is what a training step runs; `tensorflow`
leaves its products to oneDNN, as `torch` does, which use the matrix units (AMX) of a
processor that has them.
"""

import argparse
import importlib.util
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
from machine import machine

from qanet.files import write_text

SHAPES = ((2048, 2048, 2048), (2304, 128, 128), (2304, 512, 128))
DTYPES = ("float32", "bfloat16")
GROUPS, PRODUCTS = 12, 5

# From two matrices and a type to a function that multiplies them and waits.
Multiplier = Callable[[np.ndarray, np.ndarray, str], Callable[[], object]]


def with_tensorflow(left, right, dtype, xla=False):
    """Through oneDNN, or compiled by XLA."""
    import tensorflow as tf

    left, right = (tf.cast(tf.constant(x), dtype) for x in (left, right))
    product = tf.function(tf.matmul, jit_compile=xla)
    # On a processor a call returns when it is done.
    return lambda: product(left, right)


def with_xla(left, right, dtype):
    """Compiled by the XLA of TensorFlow."""
    return with_tensorflow(left, right, dtype, xla=True)


def with_jax(left, right, dtype):
    """Compiled by the XLA of JAX."""
    import jax

    left, right = (jax.numpy.asarray(x, dtype) for x in (left, right))
    product = jax.jit(jax.numpy.matmul)
    return lambda: product(left, right).block_until_ready()


def with_torch(left, right, dtype):
    """Through oneDNN."""
    import torch

    left, right = (torch.from_numpy(x).to(getattr(torch, dtype)) for x in (left, right))
    return lambda: left @ right


MULTIPLIERS: dict[str, tuple[str, Multiplier]] = {
    "tensorflow-xla": ("tensorflow", with_xla),
    "tensorflow": ("tensorflow", with_tensorflow),
    "jax": ("jax", with_jax),
    "torch": ("torch", with_torch),
}


def rate(multiply: Callable[[], object], operations: int) -> float:
    """GFLOP/s of a function that takes so many operations."""
    multiply()
    seconds = []
    for _ in range(GROUPS):
        begin = time.perf_counter()
        for _ in range(PRODUCTS):
            multiply()
        seconds.append((time.perf_counter() - begin) / PRODUCTS)
    return operations / statistics.median(seconds) / 1e9


def measure(library: str, dtype: str) -> dict:
    """The row of a library and a type."""
    rng = np.random.default_rng(0)
    row = {"library": library, "dtype": dtype}
    for rows, inner, columns in SHAPES:
        left = rng.random((rows, inner), dtype=np.float32)
        right = rng.random((inner, columns), dtype=np.float32)
        multiply = MULTIPLIERS[library][1](left, right, dtype)
        gflops = rate(multiply, 2 * rows * inner * columns)
        row[f"{rows}x{inner}x{columns}"] = round(gflops, 1)
    return row


def main() -> None:
    """Parses the options, measures, prints the table and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--libraries", nargs="+", choices=MULTIPLIERS, metavar="NAME")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    libraries = options.libraries or [
        name
        for name, (package, _) in MULTIPLIERS.items()
        if importlib.util.find_spec(package)
    ]
    rows = []
    for library in libraries:
        for dtype in DTYPES:
            rows.append(measure(library, dtype))
            print("  ".join(f"{key} {value}" for key, value in rows[-1].items()))
    if options.output:
        result = machine() | {"rows": rows}
        write_text(options.output, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
