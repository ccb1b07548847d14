"""A word's vector at inference, from what the vector table's rows come to."""

import keras
from keras import ops


class Unfold(keras.layers.Layer):
    """The output of an `InputEmbedding` at inference, from rows of its `fold`.

    Args:
        embedding: the layer.

    Input: `folded`, float `(batch, length, embedding.folded_width)`, and `characters`,
    integers `(batch, length, characters_per_word)`.
    Output: float tensor `(batch, length, width)`.
    """

    def __init__(self, embedding, **kwargs):
        super().__init__(**kwargs)
        self.embedding = embedding

    def build(self, folded_shape, characters_shape):
        # The embedding is built.
        pass

    def call(self, folded, characters):
        embedding, x = self.embedding, folded
        spelled = embedding.characters(characters) if embedding.characters else None
        if embedding.highway_first:
            if spelled is not None:
                x = ops.concatenate([x, spelled], axis=-1)
            x = embedding.projection(embedding.highway(x))
        else:
            if spelled is not None:
                kernel = embedding.projection.kernel[embedding.words.width :]
                x = x + ops.matmul(spelled, kernel)
            x = embedding.highway(x)
        return embedding.norm(x) if embedding.norm else x

    def compute_output_shape(self, folded_shape, characters_shape):
        return (*folded_shape[:-1], self.embedding.width)
