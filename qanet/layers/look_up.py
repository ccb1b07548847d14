"""Look-ups in tables, and what their rows stand for."""

import keras
from keras import ops

PADDING = 0
UNKNOWN = 1

# Standard deviation of a table's initial values, about that of GloVe's numbers.
STDDEV = 0.5


def look_up(table, rows):
    """Looks rows of a trained table up; its gradient is summed in full precision.

    In bfloat16 the sum of what a frequent row gets stops growing: 256 + 1 is 256.

    Args:
        table: float tensor `(size, width)` or `(size,)`.
        rows: integer tensor of any shape, from 0 to size - 1.

    Returns:
        Float tensor of the dtype of `table`, of the shape of `rows` and the width.
    """
    return ops.cast(_take(ops.cast(table, "float32"), rows), table.dtype)


def look_up_small(table, rows):
    """Looks rows of a small table up: on accelerators by a product.

    The gradient of a look-up adds a row for each place of the text. On a GPU those of
    one character, many thousands, wait for each other to be added. The gradient of a
    product is a product.

    Args:
        table: float tensor `(size, width)`.
        rows: integer tensor of any shape, from 0 to size - 1.

    Returns:
        Float tensor of the shape of `rows` and the width.
    """
    if keras.backend.backend() == "jax":
        import jax

        return jax.lax.platform_dependent(table, rows, cpu=look_up, default=_multiply)
    if keras.backend.backend() == "tensorflow" and has_accelerator():
        return _multiply(table, rows)
    return look_up(table, rows)


def has_accelerator() -> bool:
    """Whether TensorFlow has a GPU or a TPU."""
    import tensorflow as tf

    devices = {device.device_type for device in tf.config.list_logical_devices()}
    return bool(devices & {"GPU", "TPU"})


def _take(table, rows):
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        # Keras would look for negative rows first.
        return tf.gather(table, rows)
    return ops.take(table, rows, axis=0)


def _multiply(table, rows):
    return ops.matmul(ops.one_hot(rows, table.shape[0], dtype=table.dtype), table)
