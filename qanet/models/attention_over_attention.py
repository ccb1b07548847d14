"""Attention-over-attention (Cui et al., "Attention-over-Attention Neural Networks for
Reading Comprehension", ACL 2017), as a cloze reader and as a reader of spans.

Importing this imports no Keras, see `qanet.models.registry`.
"""

from typing import TYPE_CHECKING, Literal

from qanet.models.recurrent import (
    RecurrentReaderConfig,
    bidirectional_lstm,
    lstm_flops,
)
from qanet.models.words import EmbeddingSizes, embed_words, word_flops

if TYPE_CHECKING:
    import keras


class ClozeConfig(RecurrentReaderConfig):
    """The model of Cui et al. (2017), which answers with one word of the context.

    The paper's GRUs are LSTMs here. Its answers are sums over all places of a word,
    told at the first, where training moves them to (`qanet.datasets.first_places`);
    `data.answer_limit` is 1. Start and end being one logit, the loss is twice the
    paper's, -2 log p(word).

    Attributes:
        name: the model's name in the registry.
    """

    name: Literal["aoa-cloze"] = "aoa-cloze"


class AoAConfig(RecurrentReaderConfig):
    """Attention-over-attention as a reader of spans.

    Attributes:
        name: the model's name in the registry.
    """

    name: Literal["aoa"] = "aoa"


def build_cloze(config: ClozeConfig, sizes: EmbeddingSizes) -> "keras.Model":
    """Builds the model of the paper's figure 1.

    Args:
        config: sizes and dropout rates.
        sizes: sizes of the vocabulary that the embeddings stand on.

    Returns:
        A functional model, see `qanet.models.registry.build_model`. Start and end are
        one logit.
    """
    import keras

    from qanet.layers.attention_over_attention import AttentionOverAttention
    from qanet.layers.attention_sum import AttentionSum

    # Each text is read by an LSTM of its own.
    texts = embed_words(config, sizes)
    context = bidirectional_lstm(config, "context")(texts.context, texts.context_mask)
    question = bidirectional_lstm(config, "question")(
        texts.question, texts.question_mask
    )

    attention = AttentionOverAttention(name="attention")(
        context, question, texts.context_mask, texts.question_mask
    )
    logits = AttentionSum(name="word_sums")(
        attention, texts.inputs["context_words"], texts.inputs["context_characters"]
    )
    # Keras does not rebuild a model that gives one tensor twice.
    end = keras.layers.Identity(dtype="float32", name="end_logits")(logits)
    return keras.Model(
        texts.inputs, {"start_logits": logits, "end_logits": end}, name="aoa-cloze"
    )


def build_aoa(config: AoAConfig, sizes: EmbeddingSizes) -> "keras.Model":
    """Builds the reader of spans.

    The paper's model has no place for a span. Here the context is read again with what
    each word attends to in the question, once for the start and once more for the end;
    the question's attention-over-attention to each of the two is what the pointer reads
    beside the vectors themselves.

    Args:
        config: sizes and dropout rates.
        sizes: sizes of the vocabulary that the embeddings stand on.

    Returns:
        A functional model, see `qanet.models.registry.build_model`.
    """
    import keras

    from qanet.layers.attention_over_attention import AttentionOverAttention
    from qanet.layers.bidirectional_attention import BidirectionalAttention
    from qanet.layers.dropout import Dropout
    from qanet.layers.pointer import SpanPointer

    texts = embed_words(config, sizes)
    masks = texts.context_mask, texts.question_mask
    encoder = bidirectional_lstm(config, "encoder")
    context = encoder(texts.context, texts.context_mask)
    question = encoder(texts.question, texts.question_mask)
    aware = BidirectionalAttention(name="attention")(context, question, *masks)

    dropout = Dropout(config.dropout, name="output_dropout")
    outputs, x = [], aware
    for name in ("start", "end"):
        x = bidirectional_lstm(config, name)(x, texts.context_mask)
        attention = AttentionOverAttention(name=f"{name}_attention")(
            x, question, *masks
        )
        # Logarithms, which half precision would round.
        column = keras.layers.Reshape((-1, 1), dtype="float32", name=f"{name}_column")
        vectors = keras.layers.Concatenate(dtype="float32", name=f"{name}_vectors")
        outputs.append(vectors([dropout(x), column(attention)]))
    start, end = SpanPointer(name="pointer")(
        dropout(aware), *outputs, texts.context_mask
    )
    return keras.Model(
        texts.inputs, {"start_logits": start, "end_logits": end}, name="aoa"
    )


def cloze_flops(
    config: ClozeConfig, sizes: EmbeddingSizes, context: int, question: int
) -> int:
    """See `qanet.models.registry.forward_flops`."""
    word = word_flops(config, sizes) + lstm_flops(config, config.width)
    total = (context + question) * word
    total += context * question * (2 * config.units + 1)
    return 2 * total


def aoa_flops(
    config: AoAConfig, sizes: EmbeddingSizes, context: int, question: int
) -> int:
    """See `qanet.models.registry.forward_flops`."""
    both = 2 * config.units
    word = word_flops(config, sizes) + lstm_flops(config, config.width)
    total = (context + question) * word
    total += context * question * 2 * both + context * both  # see `bidaf_flops`
    total += context * (lstm_flops(config, 4 * both) + lstm_flops(config, both))
    total += 2 * context * question * (both + 1)
    total += 2 * context * (4 * both + both + 1)
    return 2 * total
