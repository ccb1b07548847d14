"""Dropout whose noise costs next to nothing, also on a CPU.

The library's generators spend more time on dropout noise than a small model spends
on its matrix products. Here each element's noise is one integer hash of its position
and of a seed that advances with every step, so the compiler fuses it into the
multiplication. The hash is the 32-bit finaliser of MurmurHash3 (Appleby, public
domain).
"""

import keras
import numpy as np
from keras import ops


def hash_uniform_bits(numbers, seed):
    """Pseudo-random 32-bit integers from numbers, equal for equal ones, and a seed.

    Args:
        numbers: integer tensor.
        seed: two uint32 tensors that broadcast to `numbers`.

    Returns:
        uint32 tensor of the shape of `numbers`.
    """
    x = ops.cast(numbers, "uint32")
    x = x * np.uint32(0x9E3779B9) + seed[0]
    # Two rounds: the second part of the seed must not merely shift the sequence of
    # the first, or neighbouring steps would share their noise.
    return _finalise(_finalise(x) + seed[1] * np.uint32(0x85EBCA77))


def _finalise(x):
    x = ops.bitwise_xor(x, ops.right_shift(x, np.uint32(16)))
    x = x * np.uint32(0x85EBCA6B)
    x = ops.bitwise_xor(x, ops.right_shift(x, np.uint32(13)))
    x = x * np.uint32(0xC2B2AE35)
    return ops.bitwise_xor(x, ops.right_shift(x, np.uint32(16)))


def keep_mask(shape, rate, seed):
    """Boolean tensor of `shape`, false with probability `rate`.

    Of a batch that replicas share, each draws its part of the mask that one device
    would draw for the whole.

    Args:
        shape: integers or scalar integer tensors, that of the batch first.
        rate: probability of false, in [0, 1).
        seed: uint32 tensor `(2,)`.
    """
    count = 1
    for size in shape:
        count = count * size
    numbers = ops.arange(count, dtype="int32") + count * _replica()
    return ops.reshape(_keep(numbers, rate, seed), shape)


def _replica():
    """Number of this replica. On JAX all of them are one program over whole arrays."""
    if keras.backend.backend() != "tensorflow":
        return 0
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    return replica.replica_id_in_sync_group if replica else 0


def _keep(numbers, rate, seed):
    # A rate that is nearly one is rounded to one, which no 32 bits hold.
    least = min(round(rate * 2**32), 2**32 - 1)
    return hash_uniform_bits(numbers, seed) >= np.uint32(least)


def _drop(x, keep, rate):
    return ops.where(keep, x * (1.0 / (1.0 - rate)), ops.zeros((), dtype=x.dtype))


@keras.saving.register_keras_serializable(package="qanet")
class Dropout(keras.layers.Layer):
    """Sets elements to zero in training and scales the others up.

    Args:
        rate: probability that an element is dropped, in [0, 1).
        seed: integer seed; `None` draws one from Keras' global seed.

    Shape: the output has the shape and dtype of the input.
    """

    def __init__(self, rate, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.rate = rate
        self.seed = seed
        if rate:
            self.seed_generator = keras.random.SeedGenerator(seed)
        # There is nothing to build. Before its first prediction on JAX, Keras computes
        # a model that holds a layer not yet built, each operation compiled by itself.
        self.built = True

    def call(self, x, training=False):
        if not training or not self.rate:
            return x
        seed = ops.cast(self.seed_generator.next(), "uint32")
        return _drop(x, keep_mask(ops.shape(x), self.rate, seed), self.rate)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "rate": self.rate, "seed": self.seed}
