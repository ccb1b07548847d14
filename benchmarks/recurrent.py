"""Recurrent stacks in the place of the encoder stacks, to compare the speed of both."""

import keras

from qanet.layers.bidirectional_lstm import BidirectionalLSTM
from qanet.layers.dropout import Dropout


class RecurrentStack(keras.layers.Layer):
    """Bidirectional LSTMs, one on the other.

    A direction has half the width.

    Args:
        depth: number of bidirectional layers.
        dropout: dropout rate of each layer's input.

    Input: float tensor `(batch, length, width)` and boolean mask `(batch, length)`,
    true at first and then false.
    Output: float tensor `(batch, length, width)`, zero at padding.
    """

    def __init__(self, depth, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.depth = depth
        self.dropout = dropout

    def build(self, input_shape):
        numbers = range(self.depth)
        self.dropouts = [Dropout(self.dropout, name=f"dropout_{i}") for i in numbers]
        self.lstms = [
            BidirectionalLSTM(input_shape[-1] // 2, name=f"lstm_{i}") for i in numbers
        ]
        for lstm in self.lstms:
            lstm.build(input_shape)

    def call(self, x, mask, training=False):
        for dropout, lstm in zip(self.dropouts, self.lstms, strict=True):
            x = lstm(dropout(x, training=training), mask)
        return x

    def compute_output_shape(self, input_shape):
        return input_shape


def recurrent(depth: int, dropout: float, name: str, **_) -> RecurrentStack:
    """A recurrent stack from the arguments of `EncoderStack`."""
    return RecurrentStack(depth, dropout, name=name)
