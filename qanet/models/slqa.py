"""SLQA (Wang, Yan, Wu, "Multi-Granularity Hierarchical Attention Fusion Networks for
Reading Comprehension and Question Answering", ACL 2018).

Importing this imports no Keras, see `qanet.models.registry`.
"""

from typing import TYPE_CHECKING, Literal, Self

from pydantic import model_validator

from qanet.models.recurrent import (
    RecurrentReaderConfig,
    bidirectional_lstm,
    lstm_flops,
)
from qanet.models.words import (
    EmbeddingSizes,
    contextual_mix,
    embed_words,
    mix_flops,
    word_flops,
)

if TYPE_CHECKING:
    import keras


class SLQAConfig(RecurrentReaderConfig):
    """The model of Wang, Yan and Wu, 2018.

    Its manual features are `question_match`. They stand in each word's embedding, not
    beside the fused context, as for all readers of words.

    Attributes:
        name: the model's name in the registry.
        contextual_output: contextual vectors, mixed anew, also stand beside the
            encoder's states.
    """

    name: Literal["slqa"] = "slqa"
    question_match: bool = True
    contextual_output: bool = False

    @model_validator(mode="after")
    def _check_contextual(self) -> Self:
        if self.contextual_output and not self.contextual:
            raise ValueError("contextual_output=true needs contextual, a directory")
        return self


def build_slqa(config: SLQAConfig, sizes: EmbeddingSizes) -> "keras.Model":
    """Builds the model of the paper's figure 1, from bottom to top.

    Args:
        config: sizes and dropout rates.
        sizes: sizes of the vocabulary that the embeddings stand on.

    Returns:
        A functional model, see `qanet.models.registry.build_model`.
    """
    import keras

    from qanet.layers.attention_pooling import AttentionPooling
    from qanet.layers.bilinear_pointer import BilinearPointer
    from qanet.layers.co_attention import CoAttention
    from qanet.layers.dropout import Dropout
    from qanet.layers.gated_fusion import GatedFusion
    from qanet.layers.self_alignment import BilinearSelfAlignment

    texts = embed_words(config, sizes)
    context_mask, question_mask = texts.context_mask, texts.question_mask

    # Encoder: one LSTM for both texts; a word's own vector stands beside its state.
    encoder = bidirectional_lstm(config, "encoder")
    join = keras.layers.Concatenate(name="encoded")
    context = [encoder(texts.context, context_mask), texts.context]
    question = [encoder(texts.question, question_mask), texts.question]
    if config.contextual_output and sizes.contextual:
        mix = contextual_mix(config, "language_model_output")
        context.append(mix(texts.inputs["context_contextual"]))
        question.append(mix(texts.inputs["question_contextual"]))
    context, question = join(context), join(question)

    # Co-attention, and fusion of each text with what it attended to.
    attended_context, attended_question = CoAttention(name="co_attention")(
        context, question, context_mask, question_mask
    )
    context = GatedFusion(name="context_fusion")(context, attended_context)
    question = GatedFusion(name="question_fusion")(question, attended_question)

    # Self-attention: the context is aligned with itself.
    context = bidirectional_lstm(config, "context")(context, context_mask)
    aligned = BilinearSelfAlignment(name="self_alignment")(context, context_mask)
    context = GatedFusion(name="self_fusion")(context, aligned)
    context = bidirectional_lstm(config, "fused_context")(context, context_mask)

    # Match: the question as one vector.
    question = bidirectional_lstm(config, "question")(question, question_mask)
    question = AttentionPooling(name="question_summary")(question, question_mask)
    dropout = Dropout(config.dropout, name="output_dropout")
    start, end = BilinearPointer(name="pointer")(
        dropout(context), question, context_mask
    )
    return keras.Model(
        texts.inputs, {"start_logits": start, "end_logits": end}, name="slqa"
    )


def slqa_flops(
    config: SLQAConfig, sizes: EmbeddingSizes, context: int, question: int
) -> int:
    """See `qanet.models.registry.forward_flops`."""
    both = 2 * config.units
    encoded = both + config.width
    second_mix = 0
    if config.contextual_output and sizes.contextual:
        encoded += config.width
        second_mix = mix_flops(config, sizes)

    def fusion(width: int) -> int:
        return 4 * width * (width + 1)

    word = word_flops(config, sizes) + second_mix + lstm_flops(config, config.width)
    word += encoded * encoded + fusion(encoded) + lstm_flops(config, encoded)
    total = (context + question) * word
    total += 3 * context * question * encoded  # similarity, and both attended
    # Self-alignment, and the last LSTM.
    total += context * (
        both * both + 2 * context * both + fusion(both) + lstm_flops(config, both)
    )
    total += 2 * question * both + 2 * both * both + 2 * context * both
    return 2 * total
