"""Products in half precision on a processor, with TensorFlow."""

from collections.abc import Callable

import keras


def is_half_on_processor(model: keras.Model) -> bool:
    """Whether TensorFlow computes the model's products in bfloat16 on a processor."""
    if keras.backend.backend() != "tensorflow" or model.compute_dtype != "bfloat16":
        return False
    import tensorflow as tf

    kinds = {device.device_type for device in tf.config.list_logical_devices()}
    return not kinds & {"GPU", "TPU"}


def around_products(function: Callable) -> Callable:
    """A function for a graph whose operations XLA fuses, all but the matrix products.

    TensorFlow leaves those to oneDNN, which has the processor's instructions for
    products in half precision. XLA has not.
    """
    import tensorflow as tf

    def fused(*arguments):
        with tf.xla.experimental.jit_scope(lambda node: "MatMul" not in node.op):
            return function(*arguments)

    return fused
