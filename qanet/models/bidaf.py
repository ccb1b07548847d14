"""BiDAF (Seo et al., "Bidirectional Attention Flow for Machine Comprehension", ICLR
2017).

Importing this imports no Keras, see `qanet.models.registry`.
"""

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from qanet.models.recurrent import (
    RecurrentReaderConfig,
    bidirectional_lstm,
    lstm_flops,
)
from qanet.models.words import EmbeddingSizes, embed_words, word_flops

if TYPE_CHECKING:
    import keras


class BiDAFConfig(RecurrentReaderConfig):
    """The model of Seo et al., 2017. Defaults are the paper's sizes.

    Attributes:
        name: the model's name in the registry.
        modelling_layers: bidirectional LSTMs of the modelling layer.
    """

    name: Literal["bidaf"] = "bidaf"
    modelling_layers: int = Field(default=2, ge=1, le=100)


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

    # Character, word and highway layers.
    texts = embed_words(config, sizes)

    # Contextual embedding: one LSTM for both texts.
    contextual = bidirectional_lstm(config, "contextual")
    context = contextual(texts.context, texts.context_mask)
    question = contextual(texts.question, texts.question_mask)

    # Attention flow: G.
    attended = BidirectionalAttention(name="attention")(
        context, question, texts.context_mask, texts.question_mask
    )

    # Modelling: M.
    modelled = attended
    for i in range(config.modelling_layers):
        modelled = bidirectional_lstm(config, f"modelling_{i}")(
            modelled, texts.context_mask
        )

    # Output: start from [G; M], end from [G; M2] with one LSTM more.
    end_modelled = bidirectional_lstm(config, "end")(modelled, texts.context_mask)
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
    both = 2 * config.units
    total = (context + question) * (
        word_flops(config, sizes) + lstm_flops(config, config.width)
    )
    total += context * question * 2 * both  # similarity and ũ
    total += context * both  # h̃
    later = config.modelling_layers * lstm_flops(config, both)  # and the end's
    total += context * (lstm_flops(config, 4 * both) + later)
    total += context * 2 * (4 * both + both)
    return 2 * total
