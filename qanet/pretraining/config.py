"""The typed configurations of the pre-trainings."""

from typing import ClassVar, Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from qanet.learning_config import (
    Decay,
    DistributionConfig,
    LearningConfig,
    Optimizer,
)
from qanet.models.bert import POSITIONS, BERTConfig
from qanet.models.bilm import BiLMConfig
from qanet.settings import (
    LARGEST,
    PlannedSteps,
    PositiveCount,
    Rate,
    Section,
    Size,
    check_buckets,
    check_plan,
)


class TextConfig(Section):
    """What a language model reads.

    Attributes:
        text: files, see `qanet.pretraining.texts.read_documents`.
        held_out: share of the documents that is kept from the training, to measure on.
    """

    text: tuple[str, ...]
    held_out: float = Field(default=0.02, gt=0.0, lt=1.0)


class PretrainingLearningConfig(LearningConfig):
    """How a language model is trained."""

    steps: PlannedSteps = 20_000
    decay: Decay = "linear"
    beta_1: Rate = 0.9
    clip_norm: PositiveFloat = 1.0
    l2: NonNegativeFloat = 0.0
    ema_decay: Rate = 0.0


class MLMTextConfig(TextConfig):
    """What a masked language model reads.

    Attributes:
        pieces: word pieces, at most, that are made of the text, where
            `model.pretrained` brings none.
        length: pieces of a sequence: [CLS] A [SEP] B [SEP].
    """

    pieces: int = Field(default=8000, ge=100, le=LARGEST)
    length: int = Field(default=128, ge=8, le=POSITIONS)


class MLMModelConfig(BERTConfig):
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


class MLMLearningConfig(PretrainingLearningConfig):
    """How a masked language model is trained.

    Betas, weight decay and the linear decay are BERT's (appendix A.2), epsilon and
    clipping those of its code; rate, warm-up and steps are for a small model.

    Attributes:
        batch_size: sequences in a step.
        masked: share of the pieces that are to be predicted.
        whole_words: choose all pieces of a word together.
    """

    learning_rate: PositiveFloat = 5e-4
    optimizer: Optimizer = "adamw"
    epsilon: PositiveFloat = 1e-6
    batch_size: Size = 32
    masked: float = Field(default=0.15, gt=0.0, lt=1.0)
    whole_words: bool = False

    @model_validator(mode="after")
    def _check_plan(self) -> Self:
        check_plan(self.steps, self.batch_size, "sequences")
        return self


class MLMPretrainingConfig(Section):
    """The whole configuration of a masked language model.

    Attributes:
        objective: what is learned, which tells such a directory from others.
        data: what the model reads.
        model: its sizes.
        training: how it is trained.
        distribution: where that is computed.
    """

    document: ClassVar[str] = "docs/pretraining.md"

    objective: Literal["mlm"] = "mlm"
    data: MLMTextConfig
    model: MLMModelConfig = MLMModelConfig()
    training: MLMLearningConfig = MLMLearningConfig()
    distribution: DistributionConfig = DistributionConfig()


class BiLMTextConfig(TextConfig):
    """What a bidirectional language model reads.

    Attributes:
        words: words that are predicted, at most: the most frequent ones.
    """

    words: int = Field(default=30_000, ge=10, le=LARGEST)


class BiLMLearningConfig(PretrainingLearningConfig):
    """How a bidirectional language model is trained.

    Attributes:
        buckets: lengths in words that paragraphs are padded to, in rising order; longer
            ones are read in parts.
        batch_tokens: words of a batch, padding included, at most.
        samples: words of the vocabulary that a batch's predictions are compared with,
            drawn by their frequency (sampled softmax); measuring takes all.
    """

    buckets: tuple[Size, ...] = (32, 64, 128)
    batch_tokens: PositiveCount = 2048
    samples: PositiveCount = 2048

    @model_validator(mode="after")
    def _check_buckets(self) -> Self:
        check_buckets(self.buckets, self.batch_tokens)
        return self


class BiLMPretrainingConfig(Section):
    """The whole configuration of a bidirectional language model.

    Attributes:
        objective: what is learned, which tells such a directory from others.
        data: what the model reads.
        model: its sizes.
        training: how it is trained.
        distribution: where that is computed.
    """

    document: ClassVar[str] = "docs/pretraining.md"

    objective: Literal["bilm"] = "bilm"
    data: BiLMTextConfig
    model: BiLMConfig = BiLMConfig()
    training: BiLMLearningConfig = BiLMLearningConfig()
    distribution: DistributionConfig = DistributionConfig()
