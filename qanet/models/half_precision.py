"""Products in half precision on a processor, with TensorFlow."""

import functools
from collections.abc import Callable
from pathlib import Path

import keras

from qanet.layers.look_up import has_accelerator

# Where Linux tells what a processor can do, and what multiplies bfloat16.
PROCESSORS = Path("/proc/cpuinfo")
INSTRUCTIONS = {"avx512_bf16", "amx_bf16"}


def is_half_on_processor(model: keras.Model) -> bool:
    """Whether a processor is to compute a model's products in bfloat16, by
    instructions that it has for them, and TensorFlow can do so.

    Without such instructions XLA is faster.
    """
    return (
        keras.backend.backend() == "tensorflow"
        and model.compute_dtype == "bfloat16"
        and not has_accelerator()
        and multiplies_in_half()
    )


def multiplies_in_half() -> bool:
    """Whether this processor has instructions for products in bfloat16; no where
    the system does not tell."""
    try:
        lines = PROCESSORS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.startswith("flags")), "")
    return bool(INSTRUCTIONS & set(flags.split()))


def around_products(function: Callable) -> Callable:
    """A function for a graph whose operations XLA fuses, all but the matrix products.

    TensorFlow leaves those to oneDNN, which has the processor's instructions for
    products in half precision. XLA has not.
    """
    import tensorflow as tf

    @functools.wraps(function)
    def fused(*arguments):
        with tf.xla.experimental.jit_scope(lambda node: "MatMul" not in node.op):
            return function(*arguments)

    return fused
