"""The input of a BERT encoder (Devlin et al., 2019, section 3, figure 2)."""

import keras
from keras import ops

from qanet.layers.dropout import Dropout
from qanet.layers.look_up import look_up, look_up_small

STDDEV = 0.02
SEGMENTS = 2


@keras.saving.register_keras_serializable(package="qanet")
class PieceEmbedding(keras.layers.Layer):
    """layer_norm(piece + position + segment), each a trained vector.

    Args:
        pieces: number of pieces.
        positions: positions that have a vector.
        width: size of a vector.
        dropout: dropout rate of the output.

    Input: integers `(batch, length)` each: pieces, positions and segments.
    Output: float tensor `(batch, length, width)`.
    """

    def __init__(self, pieces, positions, width, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.pieces = pieces
        self.positions = positions
        self.width = width
        self.dropout = Dropout(dropout, name="dropout")
        self.norm = keras.layers.LayerNormalization(epsilon=1e-12, name="norm")

    def build(self, pieces_shape, positions_shape, segments_shape):
        for name, rows in (
            ("piece", self.pieces),
            ("position", self.positions),
            ("segment", SEGMENTS),
        ):
            table = self.add_weight(
                name=name,
                shape=(rows, self.width),
                initializer=keras.initializers.TruncatedNormal(stddev=STDDEV),
                # The table stays in single precision; only the rows that are looked
                # up are cast.
                autocast=name != "piece",
            )
            setattr(self, f"{name}_table", table)
        self.norm.build((None, None, self.width))

    def call(self, pieces, positions, segments, training=False):
        piece, position, segment = map(
            ops.convert_to_tensor,
            (self.piece_table, self.position_table, self.segment_table),
        )
        x = ops.cast(look_up(piece, pieces), self.compute_dtype)
        # All places of all texts share these few rows.
        x = x + look_up_small(position, positions) + look_up_small(segment, segments)
        return self.dropout(self.norm(x), training=training)

    def compute_output_shape(self, pieces_shape, *others):
        return (*pieces_shape, self.width)

    def get_config(self):
        return {
            **super().get_config(),
            "pieces": self.pieces,
            "positions": self.positions,
            "width": self.width,
            "dropout": self.dropout.rate,
        }
