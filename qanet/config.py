"""The typed configuration of a run, and the presets that ship with the package.

Everything that determines a trained model stands here and is stored in its run
directory; a model's own settings stand in its file of `qanet.models`.
"""

from importlib import resources
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    Field,
    SerializeAsAny,
    field_validator,
    model_validator,
)

from qanet.errors import UserError
from qanet.learning_config import DistributionConfig, LearningConfig
from qanet.models.qanet import QANetConfig
from qanet.models.registry import MODELS
from qanet.settings import (
    Count,
    PlannedSteps,
    Section,
    Share,
    Size,
    check_plan,
    check_rising,
    configure,
)
from qanet.text.config import VocabularyConfig

# Of a file or a data set.
Name = Annotated[str, Field(min_length=1)]

# The share of a training set, beside the others'.
Weight = Annotated[float, Field(gt=0.0, le=1e6)]

# What `data.json` of a run calls other things.
RESERVED = {"train", "dev", "digest", "dev_digest"}

# What `data.mix` calls the training set itself.
ORIGINAL = "original"


class DataConfig(Section):
    """What the model gets to see.

    Attributes:
        train: the training set: a SQuAD v1.1 or v2.0 file, or `squad` for SQuAD 1.1 or
            `squad_v2` for SQuAD 2.0, downloaded once, or `sample` for the small data
            set that is part of the package.
        dev: the development set, given like `train`.
        augmented: further training sets by name, such as the paraphrases that
            `python -m qanet augment` makes.
        mix: how often each training set is drawn from; `original` is `train`. An epoch
            has all of `train` and, in proportion, examples of the others, newly drawn.
        packed: a packed data set, which `python -m qanet pack` made; it takes the place
            of `train`, `dev`, `augmented` and the settings of the vocabulary but
            `word_width`.
        context_limit: tokens of a context in training; a longer one is cut to a
            window around its answer. Evaluation reads contexts of any length.
        question_limit: tokens of a question in training; evaluation reads it whole.
        answer_limit: tokens of an answer; longer ones are left out of training and
            are not predicted unless a caller or a request allows more.
        buckets: context lengths that batches are padded to, in rising order; the last
            is the context limit. Each one is compiled once, so keep them few.
        no_answer: also learn when the context does not answer (SQuAD 2.0).
    """

    train: Name = "squad"
    dev: Name = "squad"
    augmented: dict[str, Name] = Field({})
    mix: dict[str, Weight] = Field({ORIGINAL: 1.0})
    packed: Name | None = None
    context_limit: Size = 400
    question_limit: Size = 48
    answer_limit: Size = 30
    buckets: tuple[Size, ...] = (160, 240, 400)
    no_answer: bool = False

    @model_validator(mode="after")
    def _check_buckets(self) -> Self:
        check_rising(self.buckets)
        if self.buckets[-1] != self.context_limit:
            raise ValueError("the last bucket must equal context_limit")
        if self.answer_limit > self.context_limit:
            raise ValueError("answer_limit must not be larger than context_limit")
        return self

    @model_validator(mode="after")
    def _check_mix(self) -> Self:
        for name in self.augmented.keys() & {ORIGINAL, *RESERVED}:
            raise ValueError(f"augmented: {name} is something else; take other names")
        if ORIGINAL not in self.mix:
            raise ValueError(f"mix has no weight for {ORIGINAL}")
        # An epoch has all of the original set.
        if max(self.mix.values()) > 1000 * self.mix[ORIGINAL]:
            raise ValueError(f"mix: a weight is over 1,000 times that of {ORIGINAL}")
        # A packed data set brings names that are not known here.
        if self.packed is None:
            for name in self.mix.keys() ^ {ORIGINAL, *self.augmented}:
                lacking = "mix" if name in self.augmented else "augmented"
                raise ValueError(
                    f"{lacking} lacks {name}; mix and augmented go together"
                )
        return self


class TrainingConfig(LearningConfig):
    """How a reader is trained.

    Attributes:
        batch_size: questions in a step.
        start_from: run directory whose best weights are the first ones, and whose
            vocabulary is taken; `model` must describe the same layers.
        teacher: soft targets to learn from beside the marked answers, a file that
            `python -m qanet teach` made of the same `data.train`.
        teacher_share: the teacher's share of the loss.
        temperature: what the logits of teacher and student are divided by where they
            are compared; above 1 the less probable places count more.
        evaluation_questions: questions of dev, evenly spread, that the evaluations
            in training read; 0 reads all. The final evaluation always reads all.
        evaluation_batch_size: questions in a batch of evaluation.
        precision: `bfloat16` computes products in bfloat16 and keeps weights in
            float32.
    """

    steps: PlannedSteps = 60_000
    batch_size: Size = 32
    start_from: Name | None = None
    teacher: Name | None = None
    teacher_share: Share = 0.7
    temperature: float = Field(default=2.0, gt=0.0, le=100.0)
    evaluation_questions: Count = 0
    evaluation_batch_size: Size = 32
    precision: Literal["float32", "bfloat16"] = "float32"

    @model_validator(mode="after")
    def _check_plan(self) -> Self:
        check_plan(self.steps, self.batch_size, "questions")
        return self


# Settings that were taken out, and the values with which they changed nothing.
REMOVED = (
    ("model", "initializer", "glorot"),
    ("model", "tuned_words", 0),
    ("model", "dropout_everywhere", False),
    ("model", "embedding_dropout", "elements"),
    ("training", "label_noise", 0.0),
)


class Config(Section):
    """The whole configuration of a run."""

    data: DataConfig = DataConfig()
    vocabulary: VocabularyConfig = VocabularyConfig()
    model: SerializeAsAny[Section] = QANetConfig()
    training: TrainingConfig = TrainingConfig()
    distribution: DistributionConfig = DistributionConfig()

    @model_validator(mode="before")
    @classmethod
    def _read_former(cls, values: Any) -> Any:
        """Settings by the names that former versions stored them under."""
        if not isinstance(values, dict):
            return values
        values = {
            name: dict(section) if isinstance(section, dict) else section
            for name, section in values.items()
        }
        for name, key, unused in REMOVED:
            section = values.get(name)
            if isinstance(section, dict) and section.get(key) == unused:
                del section[key]
        data, model = values.get("data"), values.get("model")
        if isinstance(data, dict):
            if "features" in data:
                former = data.pop("features")
                data["packed"] = data.get("packed") or former
            if isinstance(model, dict) and "no_answer" in model:
                data["no_answer"] = model.pop("no_answer")
        return values

    @classmethod
    def defaults(cls, values: dict[str, Any]) -> dict[str, Any]:
        """As of every section; those of the model are its own."""
        model = values.get("model")
        kind = _settings_of(model if isinstance(model, dict) else {})
        return super().defaults(values) | {"model": kind.defaults({}) if kind else {}}

    @field_validator("model", mode="before")
    @classmethod
    def _read_model(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        kind = _settings_of(value)
        if not kind:
            raise ValueError(
                f"name={value['name']!r}: there is no such model; choose one of "
                f"{', '.join(MODELS)}"
            )
        unknown = [key for key in value if key not in kind.model_fields]
        if unknown:
            raise ValueError(
                f"{value.get('name', QANetConfig().name)} has no setting {unknown[0]}; "
                "docs/configuration.md lists those of each model"
            )
        return kind.model_validate(value)

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        data, limits = self.data, MODELS[self.model.name].limits
        if limits.answer and data.answer_limit > limits.answer:
            raise ValueError(
                f"data.answer_limit={data.answer_limit} is more than {limits.answer}, "
                f"the longest answer that {self.model.name} can say; set it to that"
            )
        if limits.one_word and data.no_answer:
            raise ValueError(
                f"data.no_answer: {self.model.name} gives a distribution over the "
                "words of the context, beside which no answer would be as likely for "
                "every question; leave it out"
            )
        most = limits.together
        if most and data.context_limit + data.question_limit > most:
            raise ValueError(
                f"data.context_limit={data.context_limit} and data.question_limit="
                f"{data.question_limit} come to more than {most}, which is all that "
                f"{self.model.name} can read; lower one of them"
            )
        return self

    @field_validator("*", mode="before")
    @classmethod
    def _check_section(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("is empty; leave the section out or fill it in")
        return value


def _settings_of(model: dict[str, Any]) -> type[Section] | None:
    """The class of a model's settings by its name, if there is such a model."""
    entry = MODELS.get(str(model.get("name", QANetConfig().name)))
    return entry and entry.settings


def preset_names() -> list[str]:
    """The names of the presets that ship with the package, sorted."""
    files = resources.files("qanet").joinpath("presets").iterdir()
    return sorted(
        file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")
    )


def load_preset(name: str, overrides: list[str] | None = None) -> Config:
    """Reads a preset and applies `key=value` overrides.

    Args:
        name: name of a preset, as `preset_names` lists them.
        overrides: strings such as `"training.steps=1000"`; values are YAML.

    Raises:
        UserError: unknown preset, unknown key, wrong type or impossible value.
    """
    if name not in preset_names():
        raise UserError(
            f"unknown preset {name!r}; choose one of {', '.join(preset_names())}"
        )
    text = resources.files("qanet").joinpath("presets", f"{name}.yaml").read_text()
    values = yaml.safe_load(text) or {}
    return configure(Config, values, overrides or [], f"preset {name}")
