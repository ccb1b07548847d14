"""What the recurrent readers have in common.

Importing this imports no Keras, see `qanet.models.registry`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from qanet.models.words import WordReaderConfig
from qanet.settings import Rate, Size, SizeOrZero

if TYPE_CHECKING:
    import keras


class RecurrentReaderConfig(WordReaderConfig):
    """Settings of a recurrent reader. Sizes are those of BiDAF's paper and code.

    Attributes:
        units: size of each direction of the LSTMs.
    """

    units: Size = 100
    width: Size = 200
    character_width: SizeOrZero = 8
    character_filters: SizeOrZero = 100
    highway_before_projection: bool = False
    embedding_norm: bool = False
    dropout: Rate = 0.2


def bidirectional_lstm(
    config: RecurrentReaderConfig, name: str
) -> "Callable[..., keras.KerasTensor]":
    """A bidirectional LSTM, with dropout of what it reads.

    Returns:
        A function of vectors `(batch, length, width)` and their mask; with each call it
        is the same LSTM.
    """
    from qanet.layers.bidirectional_lstm import BidirectionalLSTM
    from qanet.layers.dropout import Dropout

    dropout = Dropout(config.dropout, name=f"{name}_dropout")
    layer = BidirectionalLSTM(config.units, name=name)
    return lambda x, mask: layer(dropout(x), mask)


def lstm_flops(config: RecurrentReaderConfig, width: int) -> int:
    """Multiply-adds of such an LSTM at one word: two directions of four gates."""
    return 2 * 4 * config.units * (width + config.units)
