"""The typed configuration of a pre-training as a masked language model."""

from typing import Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from qanet.config import DistributionConfig, LearningConfig
from qanet.models.bert import POSITIONS, BERTConfig
from qanet.settings import (
    LARGEST,
    Count,
    PlannedSteps,
    Rate,
    Section,
    Size,
    check_plan,
)


class DataConfig(Section):
    """What the model reads.

    Attributes:
        text: files, see `qanet.pretraining.texts.read_documents`.
        pieces: word pieces, at most, that are made of the text, where
            `model.pretrained` brings none.
        length: pieces of a sequence: [CLS] A [SEP] B [SEP].
        held_out: share of the documents that is kept from the training, to measure on.
    """

    text: tuple[str, ...]
    pieces: int = Field(default=8000, ge=100, le=LARGEST)
    length: int = Field(default=128, ge=8, le=POSITIONS)
    held_out: float = Field(default=0.02, gt=0.0, lt=1.0)


class ModelConfig(BERTConfig):
    """Sizes of the encoder, see `BERTConfig`; the defaults are for a processor."""

    width: Size = 256
    blocks: Size = 4
    heads: Size = 4
    feed_forward: Size = 1024

    @model_validator(mode="after")
    def _check_head(self) -> Self:
        if self.attention_over_attention:
            raise ValueError(
                "attention_over_attention is of a reader's head; set it where the "
                "encoder is fine-tuned"
            )
        return self


class TrainingConfig(LearningConfig):
    """How it is trained.

    Betas, weight decay and the linear decay are BERT's (appendix A.2), epsilon and
    clipping those of its code; rate, warm-up and steps are for a small model.

    Attributes:
        batch_size: sequences in a step.
        masked: share of the pieces that are to be predicted.
        whole_words: choose all pieces of a word together.
    """

    steps: PlannedSteps = 20_000
    learning_rate: PositiveFloat = 5e-4
    warmup_steps: Count = 1000
    decay: Literal["constant", "cosine", "linear", "trapezoid"] = "linear"
    optimizer: Literal["adam", "adamw", "adamax", "adadelta"] = "adamw"
    beta_1: Rate = 0.9
    epsilon: PositiveFloat = 1e-6
    clip_norm: PositiveFloat = 1.0
    l2: NonNegativeFloat = 0.0
    ema_decay: Rate = 0.0
    batch_size: Size = 32
    masked: float = Field(default=0.15, gt=0.0, lt=1.0)
    whole_words: bool = False

    @model_validator(mode="after")
    def _check_plan(self) -> Self:
        check_plan(self.steps, self.batch_size, "sequences")
        return self


class MLMPretrainingConfig(Section):
    """The whole configuration.

    Attributes:
        objective: what is learned, which tells such a directory from others.
        data: what the model reads.
        model: its sizes.
        training: how it is trained.
        distribution: where that is computed.
    """

    objective: Literal["mlm"] = "mlm"
    data: DataConfig
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    distribution: DistributionConfig = DistributionConfig()
