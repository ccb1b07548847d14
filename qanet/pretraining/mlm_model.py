"""BERT's encoder with the heads of its pre-training (Devlin et al., 2019, figure 1)."""

import keras
from keras import ops

from qanet.layers.feed_forward import gelu
from qanet.layers.look_up import PADDING
from qanet.layers.piece_embedding import STDDEV, PieceEmbedding
from qanet.models.bert import BERTConfig, PieceSizes, encode


def build_mlm_model(config: BERTConfig, sizes: PieceSizes) -> keras.Model:
    """Builds the model with untrained weights.

    Its inputs are those of `qanet.pretraining.mlm_batches.MaskedBatches`. Its outputs
    are float32: `masked_logits`, those of each piece at each of the masked positions,
    `(batch, positions, pieces)`, and `is_random`, `(batch, 2)`, the logits of a second
    segment that comes next and of one that is random.

    Args:
        config: settings of the encoder.
        sizes: of its pieces.
    """
    inputs = {
        name: keras.Input((None,), dtype="int32", name=name)
        for name in ("pieces", "segments", "masked_positions")
    }
    pieces = inputs["pieces"]
    positions = ops.cumsum(ops.ones_like(pieces), axis=1) - 1
    mask = ops.not_equal(pieces, PADDING)
    x = encode(pieces, positions, inputs["segments"], mask, config, sizes)
    embedding = keras.Model(inputs, x).get_layer("embedding")

    masked_logits = PiecePredictor(embedding, name="predictor")(
        x, inputs["masked_positions"]
    )
    pooled = dense(config.width, activation="tanh", name="pooler")(x[:, 0])
    is_random = dense(2, name="next_sentence")(pooled)
    outputs = {"masked_logits": masked_logits, "is_random": is_random}
    return keras.Model(inputs, outputs, name="pretraining")


def dense(units: int, **settings) -> keras.layers.Dense:
    """A dense layer that begins as BERT's do."""
    initializer = keras.initializers.TruncatedNormal(stddev=STDDEV)
    return keras.layers.Dense(units, kernel_initializer=initializer, **settings)


class PiecePredictor(keras.layers.Layer):
    """E layer_norm(gelu(x W + b)) + c at some positions; E is the table of the pieces.

    The positions are picked before, so that the large product is formed for them alone.

    Args:
        embedding: the layer whose table it shares.

    Input: float tensor `(batch, length, width)` and integers `(batch, positions)`.
    Output: float32 tensor `(batch, positions, pieces)`.
    """

    def __init__(self, embedding: PieceEmbedding, **settings):
        super().__init__(**settings)
        self.embedding = embedding
        self.transform = dense(embedding.width, activation=gelu, name="transform")
        self.norm = keras.layers.LayerNormalization(epsilon=1e-12, name="norm")

    def build(self, x_shape, positions_shape):
        self.transform.build(x_shape)
        self.norm.build(x_shape)
        self.bias = self.add_weight(
            name="bias", shape=(self.embedding.pieces,), initializer="zeros"
        )

    def call(self, x, positions):
        # A product, whose gradient is one too.
        chosen = ops.one_hot(positions, ops.shape(x)[1], dtype=x.dtype)
        x = self.norm(self.transform(ops.matmul(chosen, x)))
        return ops.matmul(x, ops.transpose(self.embedding.piece_table)) + self.bias

    def compute_output_shape(self, x_shape, positions_shape):
        return (*positions_shape, self.embedding.pieces)
