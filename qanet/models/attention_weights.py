"""How the context attends to the question, of a model that is there already."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import keras


def attention_of(name: str) -> "Callable[[keras.Model], keras.KerasTensor]":
    """Makes a function from a model to how its context attends to the question.

    Args:
        name: name of the layer that does so; the first tensor of its
            `weights_of(*inputs)` is taken.
    """

    def attention(model):
        return weights_of(model.get_layer(name))[0]

    return attention


def weights_of(layer: "keras.layers.Layer"):
    """What `layer.weights_of` makes of the layer's own inputs, as a symbolic tensor."""
    import keras

    class Weights(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.supports_masking = True
            self.layer = layer

        def call(self, *inputs):
            return layer.weights_of(*inputs)

    return Weights()(*layer.input)
