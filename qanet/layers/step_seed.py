"""One seed for all calls of a training step."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="qanet")
class StepSeed(keras.layers.Layer):
    """A seed for calls that are to drop the same in one step, and other in the next.

    Input: any tensor; it only gives the layer its place in a model.
    Output: uint32 tensor `(2,)`, new at each call in training, else zero.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator()

    def call(self, x, training=False):
        if not training:
            return ops.zeros((2,), dtype="uint32")
        return ops.cast(self.seed_generator.next(), "uint32")
