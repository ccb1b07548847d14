"""A word's features from its characters, by filters of several widths (Kim et al.,
2016; as in ELMo: Peters et al., 2018, section 3.4)."""

import keras
from keras import ops

from qanet.layers.look_up import look_up_small


@keras.saving.register_keras_serializable(package="qanet")
class CharacterCNN(keras.layers.Layer):
    """The maximum of each filter over all places of a word.

    A filter sees as many characters as it is wide, and never beyond the places that a
    word has. What fills a word's places up is a character like others.

    Args:
        characters: number of characters; they count from 1.
        width: size of a character's vector.
        filters: pairs, how wide the filters are and how many of them there are.
        activation: of the maxima, `relu` or `tanh`.

    Input: integer tensor `(batch, length, places)`, 0 at words that are padding alone.
    Output: float tensor `(batch, length, all filters)`.
    """

    def __init__(self, characters, width, filters, activation="relu", **kwargs):
        super().__init__(**kwargs)
        self.characters = characters
        self.width = width
        self.filters = [tuple(pair) for pair in filters]
        self.activation = activation

    def build(self, input_shape):
        self.table = self.add_weight(
            name="table",
            shape=(self.characters, self.width),
            initializer=keras.initializers.RandomUniform(-1.0, 1.0),
        )
        self.kernels, self.biases = [], []
        for i, (size, count) in enumerate(self.filters):
            kernel = self.add_weight(
                name=f"kernel_{i}",
                shape=(size, self.width, count),
                initializer="glorot_uniform",
            )
            bias = self.add_weight(
                name=f"bias_{i}", shape=(count,), initializer="zeros"
            )
            self.kernels.append(kernel)
            self.biases.append(bias)

    def call(self, characters):
        rows = ops.maximum(characters - 1, 0)
        x = look_up_small(ops.convert_to_tensor(self.table), rows)
        places = characters.shape[2]
        found = []
        for (size, count), kernel, bias in zip(
            self.filters, self.kernels, self.biases, strict=True
        ):
            # The characters that a filter sees side by side: one product does it.
            last = places - size + 1
            seen = ops.concatenate(
                [x[:, :, i : i + last] for i in range(size)], axis=-1
            )
            kernel = ops.reshape(kernel, (size * self.width, count))
            found.append(ops.max(ops.matmul(seen, kernel), axis=2) + bias)
        activation = keras.activations.get(self.activation)
        return activation(ops.concatenate(found, axis=-1))

    def compute_output_shape(self, input_shape):
        return (*input_shape[:2], sum(count for _, count in self.filters))

    def get_config(self):
        return {
            **super().get_config(),
            "characters": self.characters,
            "width": self.width,
            "filters": self.filters,
            "activation": self.activation,
        }
