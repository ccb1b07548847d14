"""BiDAF (Seo et al., "Bidirectional Attention Flow for Machine Comprehension", ICLR
2017).

Importing this imports no Keras, see `qanet.models.registry`.
"""

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from qanet.models.words import (
    EmbeddingSizes,
    WordReaderConfig,
    embed_words,
    word_flops,
)
from qanet.settings import Rate, Size

if TYPE_CHECKING:
    import keras


class BiDAFConfig(WordReaderConfig):
    """The model of Seo et al., 2017. Defaults are the paper's sizes.

    Attributes:
        name: the model's name in the registry.
        units: size of each direction of the LSTMs.
        modelling_layers: bidirectional LSTMs of the modelling layer.
    """

    name: Literal["bidaf"] = "bidaf"
    units: Size = 100
    modelling_layers: int = Field(default=2, ge=1, le=100)
    width: Size = 200
    character_width: Size = 8
    character_filters: int = Field(default=100, ge=0, le=10_000)
    highway_before_projection: bool = False
    embedding_norm: bool = False
    dropout: Rate = 0.2


def build_bidaf(config: BiDAFConfig, sizes: EmbeddingSizes) -> "keras.Model":
    """Builds the model of the paper's figure 1, from bottom to top.

    Args:
        config: sizes and dropout rates.
        sizes: sizes of the vocabulary that the embeddings stand on.

    Returns:
        A functional model, see `qanet.models.registry.build_model`.
    """
    import keras

    from qanet.layers.bidirectional_attention import BidirectionalAttention
    from qanet.layers.dropout import Dropout
    from qanet.layers.pointer import SpanPointer
    from qanet.layers.recurrent import BidirectionalLSTM

    def lstm(name):
        """A bidirectional LSTM, with dropout of what it reads."""
        dropout = Dropout(config.dropout, name=f"{name}_dropout")
        layer = BidirectionalLSTM(config.units, name=name)
        return lambda x, mask: layer(dropout(x), mask)

    # Character, word and highway layers.
    texts = embed_words(config, sizes)

    # Contextual embedding: one LSTM for both texts.
    contextual = lstm("contextual")
    context = contextual(texts.context, texts.context_mask)
    question = contextual(texts.question, texts.question_mask)

    # Attention flow: G.
    attended = BidirectionalAttention(name="attention")(
        context, question, texts.context_mask, texts.question_mask
    )

    # Modelling: M.
    modelled = attended
    for i in range(config.modelling_layers):
        modelled = lstm(f"modelling_{i}")(modelled, texts.context_mask)

    # Output: start from [G; M], end from [G; M2] with one LSTM more.
    end_modelled = lstm("end")(modelled, texts.context_mask)
    dropout = Dropout(config.dropout, name="output_dropout")
    start, end = SpanPointer(name="pointer")(
        dropout(attended), dropout(modelled), dropout(end_modelled), texts.context_mask
    )
    return keras.Model(
        texts.inputs, {"start_logits": start, "end_logits": end}, name="bidaf"
    )


def bidaf_flops(
    config: BiDAFConfig, sizes: EmbeddingSizes, context: int, question: int
) -> int:
    """See `qanet.models.registry.forward_flops`."""
    units, both = config.units, 2 * config.units

    def lstm(width: int) -> int:
        """Multiply-adds at one word: two directions of four gates."""
        return 2 * 4 * units * (width + units)

    total = (context + question) * (word_flops(config, sizes) + lstm(config.width))
    total += context * question * 2 * both  # similarity and ũ
    total += context * both  # h̃
    later = (config.modelling_layers - 1) * lstm(both) + lstm(both)
    total += context * (lstm(4 * both) + later)
    total += context * 2 * (4 * both + both)
    return 2 * total
