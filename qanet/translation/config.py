"""The typed configuration of a translation model and its training."""

from typing import ClassVar, Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from qanet.learning_config import DistributionConfig, LearningConfig
from qanet.settings import (
    LARGEST,
    Count,
    PlannedSteps,
    PositiveCount,
    Rate,
    Section,
    Size,
    check_buckets,
    check_heads,
)


class TranslationModelConfig(Section):
    """Sizes of the model.

    Attributes:
        name: `transformer`, or `recurrent` for the attention model before it.
        pieces: sub-words, which both languages share.
        width: size of the vectors of every layer.
        layers: blocks of the encoder and of the decoder.
        heads: attention heads of the transformer; divides the width.
        feed_forward: inner size of its feed-forward layers.
        dropout: dropout rate of every sub-layer and of the embeddings.
    """

    name: Literal["transformer", "recurrent"] = "transformer"
    # SentencePiece has three of its own.
    pieces: int = Field(default=8000, ge=10, le=LARGEST)
    width: Size = 256
    layers: int = Field(default=3, ge=1, le=100)
    heads: Size = 4
    feed_forward: Size = 1024
    dropout: Rate = 0.1

    @model_validator(mode="after")
    def _check_width(self) -> Self:
        if self.name == "transformer":
            check_heads(self.heads, self.width)
        if self.width % 2:
            raise ValueError(
                "width must be even: half are sines and half cosines, or half are read "
                "forwards and half backwards"
            )
        return self


class TranslationLearningConfig(LearningConfig):
    """How it is trained.

    Attributes:
        batch_tokens: sub-words of a batch, padding included, on either side.
        buckets: lengths in sub-words that pairs are padded to, in rising order; longer
            pairs are left out.
        label_smoothing: share of the target that all sub-words get alike.
        held_out: pairs kept from the training, to measure on.
    """

    steps: PlannedSteps = 4000
    warmup_steps: Count = 400
    beta_1: Rate = 0.9
    beta_2: Rate = 0.98
    epsilon: PositiveFloat = 1e-9
    clip_norm: PositiveFloat = 1.0
    l2: NonNegativeFloat = 0.0
    ema_decay: Rate = 0.0
    evaluate_every: PositiveCount = 500
    batch_tokens: PositiveCount = 4096
    buckets: tuple[Size, ...] = (16, 32, 64, 128)
    label_smoothing: Rate = 0.1
    held_out: PositiveCount = 1000

    @model_validator(mode="after")
    def _check_buckets(self) -> Self:
        check_buckets(self.buckets, self.batch_tokens)
        return self


class TranslationConfig(Section):
    """The whole configuration.

    Attributes:
        data: files of pairs, a line each: two texts with a tab between; what follows
            a second tab is not read. Plain or `.gz`.
        reverse: translate from the second language into the first.
        model: its sizes.
        training: how it is trained.
        distribution: where that is computed.
    """

    document: ClassVar[str] = "docs/augmentation.md"

    data: tuple[str, ...]
    reverse: bool = False
    model: TranslationModelConfig = TranslationModelConfig()
    training: TranslationLearningConfig = TranslationLearningConfig()
    distribution: DistributionConfig = DistributionConfig()
