"""The attention model before the Transformer, as a baseline.

A bidirectional recurrent encoder (Bahdanau et al., 2015), a recurrent decoder and
scaled multiplicative attention after it (Luong et al., 2015, "general", without input
feeding, so that training computes all positions at once). What the methods are stands
in `qanet.translation.transformer`.
"""

import keras
from keras import ops

from qanet.layers.dropout import Dropout
from qanet.layers.look_up import look_up
from qanet.layers.numerics import masked_softmax
from qanet.translation.config import TranslationModelConfig
from qanet.translation.subwords import PADDING


class Recurrent(keras.Model):
    """Translates sub-words into sub-words; see `Transformer`.

    Args:
        config: gives the sizes.
        pieces: size of the vocabulary, which both languages share.
    """

    def __init__(self, config: TranslationModelConfig, pieces: int):
        # Named, because Keras numbers the models of a process and the optimizer's
        # variables have the model's name in theirs.
        super().__init__(name="recurrent")
        width = config.width
        self.vectors = self.add_weight(
            name="vectors",
            shape=(pieces, width),
            initializer=keras.initializers.RandomNormal(stddev=width**-0.5),
        )
        self.dropout = Dropout(config.dropout)
        self.encoder = [
            keras.layers.Bidirectional(
                keras.layers.GRU(width // 2, return_sequences=True), name=f"encoder_{i}"
            )
            for i in range(config.layers)
        ]
        self.decoder = [
            keras.layers.GRU(
                width, return_sequences=True, return_state=True, name=f"decoder_{i}"
            )
            for i in range(config.layers)
        ]
        self.bridges = [
            keras.layers.Dense(width, activation="tanh", name=f"bridge_{i}")
            for i in range(config.layers)
        ]
        self.keys = keras.layers.Dense(width, use_bias=False, name="keys")
        self.join = keras.layers.Dense(width, activation="tanh", name="join")
        for layer in (*self.encoder, *self.decoder, self.keys):
            layer.build((None, None, width))
        for layer in self.bridges:
            layer.build((None, width))
        self.join.build((None, None, 2 * width))
        self.scale = self.add_weight(name="scale", shape=(), initializer="ones")
        self.built = True

    def call(self, inputs, training=False):
        """Logits of each next sub-word, float32 `(batch, target length, pieces)`."""
        memory = self.encode(inputs["source"], training)
        return self.decode(memory, inputs["target"], training)

    def encode(self, source, training=False):
        """Reads the source."""
        real = ops.not_equal(source, PADDING)
        x = self.dropout(self._embed(source), training=training)
        for layer in self.encoder:
            x = self.dropout(layer(x, mask=real, training=training), training=training)
        weights = ops.cast(real, x.dtype)[:, :, None]
        mean = ops.sum(x * weights, axis=1) / ops.maximum(ops.sum(weights, axis=1), 1.0)
        return real, x, self.keys(x), tuple(bridge(mean) for bridge in self.bridges)

    def decode(self, memory, target, training=False):
        """Logits after each sub-word of the target."""
        *_, states = memory
        x = self.dropout(self._embed(target), training=training)
        for layer, state in zip(self.decoder, states, strict=True):
            x, _ = layer(x, initial_state=state, training=training)
            x = self.dropout(x, training=training)
        return self._logits(memory, x, training)

    def begin(self, memory, length):
        """The decoder's state before the first sub-word."""
        return memory[-1]

    def advance(self, memory, state, token, position):
        """Logits `(batch, pieces)` after one more sub-word `(batch,)`."""
        x = self._embed(token[:, None])
        new_state = []
        for layer, before in zip(self.decoder, state, strict=True):
            x, after = layer(x, initial_state=before)
            new_state.append(after)
        return self._logits(memory, x)[:, 0], tuple(new_state)

    def _embed(self, tokens):
        vectors = ops.convert_to_tensor(self.vectors)
        x = look_up(vectors, tokens) * vectors.shape[1] ** 0.5
        return ops.cast(x, self.compute_dtype)

    def _logits(self, memory, x, training=False):
        real, encoded, keys, _ = memory
        scores = ops.matmul(x, ops.transpose(keys, (0, 2, 1)))
        scores = scores * (self.scale * x.shape[-1] ** -0.5)
        attended = ops.matmul(masked_softmax(scores, real[:, None, :]), encoded)
        x = self.join(ops.concatenate([attended, x], axis=-1))
        x = self.dropout(x, training=training)
        return ops.cast(ops.matmul(x, ops.transpose(self.vectors)), "float32")
