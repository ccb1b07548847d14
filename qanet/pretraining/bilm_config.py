"""The typed configuration of a pre-training as a bidirectional language model."""

from typing import Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from qanet.config import DistributionConfig, LearningConfig
from qanet.models.bilm import BiLMConfig
from qanet.settings import (
    LARGEST,
    Count,
    PlannedSteps,
    PositiveCount,
    Rate,
    Section,
    Size,
    check_buckets,
)


class TextConfig(Section):
    """What the model reads.

    Attributes:
        text: files, see `qanet.pretraining.texts.read_documents`.
        words: words that are predicted, at most: the most frequent ones.
        held_out: share of the documents that is kept from the training, to measure on.
    """

    text: tuple[str, ...]
    words: int = Field(default=30_000, ge=10, le=LARGEST)
    held_out: float = Field(default=0.02, gt=0.0, lt=1.0)


class BiLMLearningConfig(LearningConfig):
    """How it is trained.

    Attributes:
        buckets: lengths in words that paragraphs are padded to, in rising order; longer
            ones are read in parts.
        batch_tokens: words of a batch, padding included, at most.
        samples: words of the vocabulary that a batch's predictions are compared with,
            drawn by their frequency (sampled softmax); measuring takes all.
    """

    steps: PlannedSteps = 20_000
    warmup_steps: Count = 1000
    decay: Literal["constant", "cosine", "linear", "trapezoid"] = "linear"
    beta_1: Rate = 0.9
    l2: NonNegativeFloat = 0.0
    clip_norm: PositiveFloat = 1.0
    ema_decay: Rate = 0.0
    buckets: tuple[Size, ...] = (32, 64, 128)
    batch_tokens: PositiveCount = 2048
    samples: PositiveCount = 2048

    @model_validator(mode="after")
    def _check_buckets(self) -> Self:
        check_buckets(self.buckets, self.batch_tokens)
        return self


class BiLMPretrainingConfig(Section):
    """The whole configuration.

    Attributes:
        objective: what is learned, which tells such a directory from others.
        data: what the model reads.
        model: its sizes.
        training: how it is trained.
        distribution: where that is computed.
    """

    objective: Literal["bilm"] = "bilm"
    data: TextConfig
    model: BiLMConfig = BiLMConfig()
    training: BiLMLearningConfig = BiLMLearningConfig()
    distribution: DistributionConfig = DistributionConfig()
