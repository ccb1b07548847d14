"""A word's own vector, before it meets its neighbours (QANet, section 2.2, "Input
Embedding Layer")."""

import keras
from keras import ops

from qanet.layers.character_embedding import CharacterEmbedding
from qanet.layers.dropout import Dropout
from qanet.layers.highway import Highway
from qanet.layers.word_embedding import WordEmbedding


@keras.saving.register_keras_serializable(package="qanet")
class InputEmbedding(keras.layers.Layer):
    """[word; characters], a highway network, and a projection to the model's width.

    The output at a place follows from the word there alone, so that the vectors of
    known words can be computed once and looked up afterwards.

    Args:
        width: size of the output.
        words: arguments of `WordEmbedding`.
        characters: arguments of `CharacterEmbedding`; None leaves characters out.
        highway_layers: layers of the highway network.
        highway_first: run it at the width of the joined embeddings, before the
            projection, as the paper does, instead of after it.
        norm: normalise the output.
        word_dropout, character_dropout: rates at which single elements are dropped.
        dropout: dropout rate of the highway network's transforms.

    Input: `rows`, integers `(batch, length)`, and `characters`, integers
    `(batch, length, characters_per_word)`.
    Output: float tensor `(batch, length, width)`.
    """

    def __init__(
        self,
        width,
        words,
        characters,
        highway_layers=2,
        highway_first=True,
        norm=True,
        word_dropout=0.0,
        character_dropout=0.0,
        dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.settings = {
            "width": width,
            "words": words,
            "characters": characters,
            "highway_layers": highway_layers,
            "highway_first": highway_first,
            "norm": norm,
            "word_dropout": word_dropout,
            "character_dropout": character_dropout,
            "dropout": dropout,
        }
        self.width = width
        self.highway_first = highway_first
        self.words = WordEmbedding(**words, name="words")
        self.characters = None
        if characters:
            self.characters = CharacterEmbedding(**characters, name="characters")
        self.word_dropout = Dropout(word_dropout, name="word_dropout")
        self.character_dropout = Dropout(character_dropout, name="character_dropout")
        self.highway = Highway(highway_layers, dropout, name="highway")
        self.projection = keras.layers.Dense(width, use_bias=False, name="projection")
        self.norm = None
        if norm:
            self.norm = keras.layers.LayerNormalization(epsilon=1e-6, name="norm")

    def build(self, rows_shape, characters_shape):
        self.words.build(rows_shape)
        joined = self.words.width
        if self.characters:
            self.characters.build(characters_shape)
            joined += self.characters.compute_output_shape(characters_shape)[-1]
        at_joined, at_width = (*rows_shape, joined), (*rows_shape, self.width)
        if self.highway_first:
            self.highway.build(at_joined)
            self.projection.build(at_joined)
        else:
            self.projection.build(at_joined)
            self.highway.build(at_width)
        if self.norm:
            self.norm.build(at_width)

    def call(self, rows, characters, training=False):
        x = self.word_dropout(self.words(rows), training=training)
        if self.characters:
            spelled = self.characters(characters)
            spelled = self.character_dropout(spelled, training=training)
            x = ops.concatenate([x, spelled], axis=-1)
        if self.highway_first:
            x = self.projection(self.highway(x, training=training))
        else:
            x = self.highway(self.projection(x), training=training)
        return self.norm(x) if self.norm else x

    @property
    def folded_width(self):
        """Features of what `fold` gives."""
        return self.words.width if self.highway_first else self.width

    def fold(self):
        """What each row of the vector table decides, as a table of its own.

        It is the row's part of the projection, or the row where the highway network
        comes before that.

        Returns:
            float32 array `(rows, folded_width)`; `Unfold` makes vectors of it.
        """
        table = ops.convert_to_numpy(self.words.vectors)
        if self.highway_first:
            return table
        return table @ ops.convert_to_numpy(self.projection.kernel)[: self.words.width]

    def compute_output_shape(self, rows_shape, characters_shape):
        return (*rows_shape, self.width)

    def get_config(self):
        return {**super().get_config(), **self.settings}
