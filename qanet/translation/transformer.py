"""The Transformer encoder-decoder (Vaswani et al., 2017), normalised before sub-layers.

Like every translation model here it has one interface, which training and search use:

    memory = model.encode(source)
    logits = model.decode(memory, target)              all positions at once
    state = model.begin(memory, length)
    logits, state = model.advance(memory, state, token, position)     one at a time

`memory` and `state` are nested tuples of tensors whose first axis is the batch.
"""

import keras
from keras import ops

from qanet.layers.attention import MultiHeadAttention
from qanet.layers.dropout import Dropout
from qanet.layers.feed_forward import FeedForward
from qanet.layers.look_up import look_up
from qanet.layers.positions import position_signal
from qanet.translation.config import TranslationModelConfig
from qanet.translation.subwords import PADDING


class Transformer(keras.Model):
    """Translates sub-words into sub-words.

    Args:
        config: gives the sizes.
        pieces: size of the vocabulary, which both languages share; so do they the
            vectors, which the softmax uses too.
    """

    def __init__(self, config: TranslationModelConfig, pieces: int):
        # Named, because Keras numbers the models of a process and the optimizer's
        # variables have the model's name in theirs.
        super().__init__(name="transformer")
        width = config.width
        self.width = width
        self.vectors = self.add_weight(
            name="vectors",
            shape=(pieces, width),
            initializer=keras.initializers.RandomNormal(stddev=width**-0.5),
        )
        self.dropout = Dropout(config.dropout)
        self.encoder = [
            EncoderBlock(config, name=f"encoder_{i}") for i in range(config.layers)
        ]
        self.decoder = [
            DecoderBlock(config, name=f"decoder_{i}") for i in range(config.layers)
        ]
        self.encoder_norm = _norm(width, "encoder_norm")
        self.decoder_norm = _norm(width, "decoder_norm")
        self.built = True

    def call(self, inputs, training=False):
        """Logits of each next sub-word.

        Args:
            inputs: `source` and `target`, int32 `(batch, length)` each; the target
                begins with the mark of the beginning.

        Returns:
            float32 tensor `(batch, target length, pieces)`.
        """
        memory = self.encode(inputs["source"], training)
        return self.decode(memory, inputs["target"], training)

    def encode(self, source, training=False):
        """Reads the source; see the module for the interface."""
        mask = ops.not_equal(source, PADDING)[:, None, None, :]
        length = ops.shape(source)[1]
        x = self._embed(source, position_signal(length, self.width))
        x = self.dropout(x, training=training)
        for block in self.encoder:
            x = block(x, mask, training=training)
        x = self.encoder_norm(x)
        return mask, tuple(block.cross.keys_and_values(x) for block in self.decoder)

    def decode(self, memory, target, training=False):
        """Logits after each sub-word of the target."""
        mask, crosses = memory
        length = ops.shape(target)[1]
        places = ops.arange(length)
        causal = (places[:, None] >= places[None, :])[None, None]
        x = self._embed(target, position_signal(length, self.width))
        x = self.dropout(x, training=training)
        for block, cross in zip(self.decoder, crosses, strict=True):
            own = block.keys_and_values(x)
            x = block(x, own, causal, cross, mask, training=training)
        return self._logits(x)

    def begin(self, memory, length):
        """Empty keys and values for a target of at most `length` sub-words."""
        _, crosses = memory
        batch, heads, _, size = ops.shape(crosses[0][0])
        empty = ops.zeros((batch, heads, length, size), dtype=self.compute_dtype)
        return tuple((empty, empty) for _ in self.decoder)

    def advance(self, memory, state, token, position):
        """Logits `(batch, pieces)` after one more sub-word `(batch,)`."""
        mask, crosses = memory
        length = state[0][0].shape[2]
        seen = (ops.arange(length) <= position)[None, None, None, :]
        signal = ops.take(position_signal(length, self.width), position, axis=0)
        x = self._embed(token[:, None], signal)
        new_state = []
        for block, cross, (keys, values) in zip(
            self.decoder, crosses, state, strict=True
        ):
            key, value = block.keys_and_values(x)
            keys = ops.slice_update(keys, (0, 0, position, 0), key)
            values = ops.slice_update(values, (0, 0, position, 0), value)
            x = block(x, (keys, values), seen, cross, mask)
            new_state.append((keys, values))
        return self._logits(x)[:, 0], tuple(new_state)

    def _embed(self, tokens, signal):
        x = look_up(ops.convert_to_tensor(self.vectors), tokens) * self.width**0.5
        return ops.cast(x + signal, self.compute_dtype)

    def _logits(self, x):
        x = ops.matmul(self.decoder_norm(x), ops.transpose(self.vectors))
        return ops.cast(x, "float32")


class EncoderBlock(keras.layers.Layer):
    """Self-attention and feed-forward, each x + f(norm(x)).

    Args:
        config: gives the sizes.
    """

    def __init__(self, config: TranslationModelConfig, **kwargs):
        super().__init__(**kwargs)
        self.attention = MultiHeadAttention(
            config.width, config.heads, name="attention"
        )
        self.attention_norm = _norm(config.width, "attention_norm")
        self.feed_forward = _feed_forward(config)
        self.feed_forward_norm = _norm(config.width, "feed_forward_norm")
        self.dropout = Dropout(config.dropout)
        self.built = True

    def call(self, x, mask, training=False):
        normed = self.attention_norm(x)
        keys, values = self.attention.keys_and_values(normed)
        y = self.attention(normed, keys, values, mask)
        x = x + self.dropout(y, training=training)
        y = self.feed_forward(self.feed_forward_norm(x))
        return x + self.dropout(y, training=training)


class DecoderBlock(keras.layers.Layer):
    """Self-attention, attention to the source and feed-forward.

    Args:
        config: gives the sizes.
    """

    def __init__(self, config: TranslationModelConfig, **kwargs):
        super().__init__(**kwargs)
        self.attention = MultiHeadAttention(
            config.width, config.heads, name="attention"
        )
        self.attention_norm = _norm(config.width, "attention_norm")
        self.cross = MultiHeadAttention(config.width, config.heads, name="cross")
        self.cross_norm = _norm(config.width, "cross_norm")
        self.feed_forward = _feed_forward(config)
        self.feed_forward_norm = _norm(config.width, "feed_forward_norm")
        self.dropout = Dropout(config.dropout)
        self.built = True

    def keys_and_values(self, x):
        """What later positions attend to of these ones."""
        return self.attention.keys_and_values(self.attention_norm(x))

    def call(self, x, own, own_mask, cross, cross_mask, training=False):
        y = self.attention(self.attention_norm(x), *own, own_mask)
        x = x + self.dropout(y, training=training)
        y = self.cross(self.cross_norm(x), *cross, cross_mask)
        x = x + self.dropout(y, training=training)
        y = self.feed_forward(self.feed_forward_norm(x))
        return x + self.dropout(y, training=training)


def _norm(width: int, name: str) -> keras.layers.LayerNormalization:
    norm = keras.layers.LayerNormalization(epsilon=1e-6, name=name)
    norm.build((None, None, width))
    return norm


def _feed_forward(config: TranslationModelConfig) -> FeedForward:
    layer = FeedForward(config.feed_forward, name="feed_forward")
    layer.build((None, None, config.width))
    return layer
