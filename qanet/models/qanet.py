"""QANet (Yu et al., "QANet: Combining Local Convolution with Global Self-Attention
for Reading Comprehension", ICLR 2018).

Importing this imports no Keras, see `qanet.models.registry`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from qanet.models.words import (
    EmbeddingSizes,
    WordReaderConfig,
    embed_words,
    word_flops,
)
from qanet.settings import Depth, Probability, Section, Size, SizeOrZero, check_heads

if TYPE_CHECKING:
    import keras


class StackConfig(Section):
    """One stack of encoder blocks.

    Attributes:
        blocks: number of blocks.
        convolutions: convolutions in a block.
        kernel_size: positions that a convolution sees.
    """

    blocks: PositiveInt = Field(le=100)
    convolutions: Depth
    kernel_size: Size


class QANetConfig(WordReaderConfig):
    """The model of Yu et al., 2018.

    Default sizes are the paper's, norms, positions and scales are ours; the paper's are
    those of preset `qanet-paper`.

    Attributes:
        name: the model's name in the registry.
        heads: attention heads; divides the width. 0 leaves self-attention out.
        feed_forward: inner size of the feed-forward layers.
        separable: make the convolutions depthwise-separable.
        embedding_encoder: the stack that context and question share.
        model_encoder: the stack that is applied `passes` times.
        attention: how the context meets the question: `both_ways` is the paper's, from
            context to question and back; `context_to_query` leaves the way back out,
            `dcn` is the co-attention of Xiong et al., 2017.
        passes: applications of the model encoder; the pointer reads the last three.
        survival: probability that the last sub-layer of a stack takes part in a
            training step (stochastic depth).
        residual_scale: fixed factor of every sub-layer's output; the paper has 1.
        position_scale: amplitude of the position signal; the paper has 1.
        position_per_block: add the position signal in every block, as the paper's
            figure 1 draws it, not once each time a stack is applied.
        final_norm: normalise the output of each stack; the paper has false.
    """

    name: Literal["qanet"] = "qanet"
    heads: SizeOrZero = 8
    feed_forward: Size = 128
    separable: bool = True
    embedding_encoder: StackConfig = StackConfig(
        blocks=1, convolutions=4, kernel_size=7
    )
    model_encoder: StackConfig = StackConfig(blocks=7, convolutions=2, kernel_size=5)
    attention: Literal["both_ways", "context_to_query", "dcn"] = "both_ways"
    passes: int = Field(default=3, ge=3, le=100)
    survival: Probability = 0.9
    residual_scale: PositiveFloat = 0.3
    position_scale: PositiveFloat = 0.3
    position_per_block: bool = False
    final_norm: bool = True

    @model_validator(mode="after")
    def _check_width(self) -> Self:
        if self.heads:
            check_heads(self.heads, self.width)
        if self.width % 2:
            raise ValueError("width must be even, half sines and half cosines")
        return self


def build_qanet(
    config: QANetConfig,
    sizes: EmbeddingSizes,
    encoder: "Callable[..., keras.layers.Layer] | None" = None,
) -> "keras.Model":
    """Builds the model of the paper's figure 1, from bottom to top.

    Args:
        config: sizes, passes and dropout rates.
        sizes: sizes of the vocabulary that the embeddings stand on.
        encoder: makes each of the two stacks, from the arguments of `EncoderStack`,
            which is the default; to compare it with stacks of another kind.

    Returns:
        A functional model, see `qanet.models.registry.build_model`.
    """
    import keras

    from qanet.layers.context_query_attention import ContextQueryAttention
    from qanet.layers.context_to_query_attention import ContextToQueryAttention
    from qanet.layers.dcn_attention import DCNAttention
    from qanet.layers.dropout import Dropout
    from qanet.layers.encoder import EncoderStack
    from qanet.layers.pointer import SpanPointer

    def stack(part: StackConfig, name: str) -> keras.layers.Layer:
        return (encoder or EncoderStack)(
            **part.model_dump(),
            heads=config.heads,
            feed_forward=config.feed_forward,
            dropout=config.dropout,
            survival=config.survival,
            residual_scale=config.residual_scale,
            position_scale=config.position_scale,
            position_per_block=config.position_per_block,
            separable=config.separable,
            final_norm=config.final_norm,
            name=name,
        )

    # Input embedding.
    texts = embed_words(config, sizes)

    # Embedding encoder: one stack for both texts.
    embedding_encoder = stack(config.embedding_encoder, "embedding_encoder")
    context = embedding_encoder(texts.context, texts.context_mask)
    question = embedding_encoder(texts.question, texts.question_mask)

    # Context-query attention, and projection to the width of the model encoder.
    attention = {
        "both_ways": ContextQueryAttention,
        "context_to_query": ContextToQueryAttention,
        "dcn": DCNAttention,
    }[config.attention]
    attended = attention(name="context_query_attention")(
        context, question, texts.context_mask, texts.question_mask
    )
    x = keras.layers.Dense(config.width, use_bias=False, name="attended")(attended)
    x = Dropout(config.dropout, name="attended_dropout")(x)

    # Model encoder: one stack, applied several times.
    model_encoder = stack(config.model_encoder, "model_encoder")
    between_passes = Dropout(config.dropout, name="pass_dropout")
    outputs = []
    for _ in range(config.passes):
        x = model_encoder(x, texts.context_mask)
        outputs.append(x)
        x = between_passes(x)

    # Output: start from the first two of the last three passes, end from the first
    # and the third.
    m0, m1, m2 = outputs[-3:]
    start, end = SpanPointer(name="pointer")(m0, m1, m2, texts.context_mask)
    return keras.Model(
        texts.inputs, {"start_logits": start, "end_logits": end}, name="qanet"
    )


def qanet_flops(
    config: QANetConfig, sizes: EmbeddingSizes, context: int, question: int
) -> int:
    """See `qanet.models.registry.forward_flops`."""
    width = config.width

    def stack(part: StackConfig, length: int) -> int:
        filters = width + part.kernel_size
        if not config.separable:
            filters = width * part.kernel_size
        block = part.convolutions * filters * width
        attention = 4 * width * width + 2 * length * width if config.heads else 0
        feed_forward = 2 * width * config.feed_forward
        return part.blocks * length * (block + attention + feed_forward)

    word = word_flops(config, sizes)
    total = 0
    for length in (context, question):
        total += length * word + stack(config.embedding_encoder, length)
    if config.attention == "dcn":
        # With the sentinels: similarity, C^Q and C^D; and the question's projection.
        pairs = 2 * (context + 1) * (question + 1) + 2 * context * (question + 1)
        total += pairs * width + question * width * width
        joined = 3
    elif config.attention == "context_to_query":
        total += 2 * context * question * width  # similarity and A
        joined = 3
    else:
        total += 4 * context * question * width  # those, and the two of B
        joined = 4
    total += context * joined * width * width
    total += config.passes * stack(config.model_encoder, context)
    total += 2 * context * 2 * width
    return 2 * total
