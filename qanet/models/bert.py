"""BERT as a reader (Devlin et al., 2019, section 4.2).

Importing this imports no Keras, see `qanet.models.registry`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from pydantic import model_validator

from qanet.models.limits import ReadingLimits
from qanet.settings import Rate, Section, Size, check_heads

if TYPE_CHECKING:
    import keras

# [CLS] and twice [SEP].
MARKS = 3
# The authors' windows: 384 pieces in all, of them at most 64 of the question, each 128
# pieces after the one before. Of the positions, the rest is left to long questions.
POSITIONS = 512
LIMITS = ReadingLimits(
    window=384 - 64 - MARKS,
    stride=128,
    question=POSITIONS - (384 - 64),
    together=POSITIONS - MARKS,
)


@dataclass(frozen=True)
class PieceSizes:
    """What a model must know of word pieces.

    Attributes:
        pieces: their number.
        cls, sep: the numbers of [CLS] and [SEP].
    """

    pieces: int
    cls: int
    sep: int

    @property
    def columns(self) -> dict[str, tuple[int, ...]]:
        """The columns of `WordPieces.table`, and their shape at each piece."""
        return {"pieces": ()}


def piece_sizes(pieces) -> PieceSizes:
    """What a model of word pieces must know of `qanet.text.pieces.WordPieces`."""
    number_of = pieces.number_of
    return PieceSizes(len(number_of), number_of["[CLS]"], number_of["[SEP]"])


class BERTConfig(Section):
    """Settings of BERT. Defaults are BERT base's.

    Attributes:
        name: the model's name in the registry.
        pretrained: directory of a public BERT model, with its `config.json`,
            `vocab.txt` and weights, of a reader also its head; see
            `qanet.models.bert_weights`. Without one the training begins at random.
        width: size of the vectors of every layer.
        blocks: number of blocks.
        heads: attention heads; divides the width.
        feed_forward: inner size of the feed-forward layers.
        dropout: dropout rate of the embeddings and of every sub-layer.
        attention_dropout: dropout rate of the attention's weights.
        attention_over_attention: add to the logits how much the question attends to
            each piece of the context (after Cui et al., 2017).
    """

    name: Literal["bert"] = "bert"
    pretrained: str | None = None
    width: Size = 768
    blocks: Size = 12
    heads: Size = 12
    feed_forward: Size = 3072
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.1
    attention_over_attention: bool = False

    @model_validator(mode="after")
    def _check_heads(self) -> Self:
        check_heads(self.heads, self.width)
        return self


def build_bert(config: BERTConfig, sizes: PieceSizes) -> "keras.Model":
    """Builds BERT with untrained weights.

    Args:
        config: its settings.
        sizes: sizes of the pieces that the embeddings stand on.

    Returns:
        A model of the inputs `context_pieces` and `question_pieces`, whose logits are
        `(batch, 1 + context_length)`, those of [CLS] first.
    """
    import keras

    from qanet.layers.join_texts import JoinTexts
    from qanet.layers.joined_attention_over_attention import (
        JoinedAttentionOverAttention,
    )
    from qanet.layers.joined_pointer import JoinedPointer
    from qanet.models.inputs import reading_inputs

    inputs = reading_inputs(sizes.columns)
    context, question = inputs["context_pieces"], inputs["question_pieces"]

    join = JoinTexts(sizes.cls, sizes.sep, name="join")
    x = encode(*join(question, context), config, sizes)
    logits = JoinedPointer(name="pointer")(x, question, context)
    if config.attention_over_attention:
        added = JoinedAttentionOverAttention(name="over_attention")(
            x, question, context
        )
        total = keras.layers.Add(dtype="float32", name="logits")
        logits = [total(pair) for pair in zip(logits, added, strict=True)]
    start, end = logits

    outputs = {"start_logits": start, "end_logits": end}
    return keras.Model(inputs, outputs, name="bert")


def encode(pieces, positions, segments, mask, config: BERTConfig, sizes: PieceSizes):
    """Makes BERT's encoder, which its readers and its pre-training have in common.

    Its layers are `embedding` and `block_0` to the last.

    Args:
        pieces, positions, segments: integer tensors `(batch, length)`; positions are
            below `POSITIONS`, segments are 0 or 1.
        mask: boolean tensor `(batch, length)`, true where pieces are real.
        config: its settings.
        sizes: of the pieces.

    Returns:
        The hidden states of the last block, float tensor `(batch, length, width)`.
    """
    from qanet.layers.piece_embedding import PieceEmbedding
    from qanet.layers.transformer_block import TransformerBlock

    embed = PieceEmbedding(
        sizes.pieces, POSITIONS, config.width, config.dropout, name="embedding"
    )
    x = embed(pieces, positions, segments)
    for i in range(config.blocks):
        x = TransformerBlock(
            config.heads,
            config.feed_forward,
            config.dropout,
            config.attention_dropout,
            name=f"block_{i}",
        )(x, mask)
    return x


def bert_attention(model: "keras.Model") -> "keras.KerasTensor":
    """The last block's, the mean of its heads; each row sums to at most one.

    The rest is what the context attends to itself and to special pieces.
    """
    import keras

    from qanet.layers.join_texts import context_places, question_places
    from qanet.layers.transformer_block import transformer_blocks
    from qanet.models.attention_weights import weights_of

    class BetweenTexts(keras.layers.Layer):
        def call(self, weights, question, context):
            of_context = weights[:, context_places(question, context)]
            return of_context[:, :, question_places(question)]

    return BetweenTexts()(
        weights_of(transformer_blocks(model)[-1]),
        model.input["question_pieces"],
        model.input["context_pieces"],
    )


def bert_flops(config: BERTConfig, sizes: PieceSizes, context: int, question: int):
    """Operations of a forward pass, see `qanet.models.registry.forward_flops`."""
    length, width = context + question + MARKS, config.width
    matrices = 4 * width**2 + 2 * width * config.feed_forward
    attention = 2 * length * width
    pointer = 2 * width * (1 + context)
    if config.attention_over_attention:
        pointer += 2 * context * (width**2 + question * (width + 1))
    return 2 * (config.blocks * length * (matrices + attention) + pointer)
