"""Which reading models there are, and what each of them offers.

A model is one file of this package: its settings, and what builds it. Those files
import Keras where they build and not before, so that the configuration, which knows
the settings of all models, is checked before anybody waits for Keras.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from qanet.models.attention_over_attention import (
    AoAConfig,
    ClozeConfig,
    aoa_flops,
    build_aoa,
    build_cloze,
    cloze_flops,
)
from qanet.models.attention_weights import attention_of
from qanet.models.bert import (
    LIMITS,
    BERTConfig,
    bert_attention,
    bert_flops,
    build_bert,
    piece_sizes,
)
from qanet.models.bidaf import BiDAFConfig, bidaf_flops, build_bidaf
from qanet.models.limits import ReadingLimits
from qanet.models.qanet import QANetConfig, build_qanet, qanet_flops
from qanet.models.slqa import SLQAConfig, build_slqa, slqa_flops
from qanet.models.words import word_sizes
from qanet.settings import Section

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class Model:
    """A reading model.

    Attributes:
        settings: its section of the configuration; `name` is its name here.
        build: makes it from its settings and the sizes of its tokens, with the inputs
            of `qanet.models.inputs` and the outputs `start_logits` and `end_logits`,
            float32 `(batch, context_length)`.
        flops: counts the operations of a forward pass, see `forward_flops`.
        attention: makes of the model a tensor `(batch, context_length,
            question_length)`: how each token of the context attends to the question;
            none for a reader, such as one of your own, that does not tell it.
        text: the text encoder that it reads, of `qanet.text.encoders`.
        sizes: what it must know of that encoder, from the encoder and its settings.
        limits: how long texts it reads.
        none_first: its logits are `(batch, 1 + context_length)`, that of no answer
            first, whether it is asked for or not.
        load_pretrained: gives a model the weights of its setting `pretrained`, before
            it is trained; raises `UserError`.
    """

    settings: type[Section]
    build: "Callable[[Section, Any], keras.Model]"
    flops: Callable[[Section, Any, int, int], int]
    attention: "Callable[[keras.Model], keras.KerasTensor] | None" = None
    text: str = "words"
    sizes: Callable[[Any, Section], Any] = word_sizes
    limits: ReadingLimits = field(default_factory=ReadingLimits)
    none_first: bool = False
    load_pretrained: "Callable[[keras.Model, Section], None] | None" = None


def _load_bert(model: "keras.Model", config: BERTConfig) -> None:
    # Here, so that settings are read without NumPy.
    from qanet.models.bert_weights import load_pretrained

    load_pretrained(model, config)


MODELS = {
    "qanet": Model(
        QANetConfig,
        build_qanet,
        qanet_flops,
        attention=attention_of("context_query_attention"),
    ),
    "bidaf": Model(
        BiDAFConfig, build_bidaf, bidaf_flops, attention=attention_of("attention")
    ),
    "slqa": Model(
        SLQAConfig, build_slqa, slqa_flops, attention=attention_of("co_attention")
    ),
    "aoa": Model(AoAConfig, build_aoa, aoa_flops, attention=attention_of("attention")),
    "aoa-cloze": Model(
        ClozeConfig,
        build_cloze,
        cloze_flops,
        attention=attention_of("attention"),
        # A word's places are added up within a window alone.
        limits=ReadingLimits(window=2000, stride=1500, answer=1),
    ),
    "bert": Model(
        BERTConfig,
        build_bert,
        bert_flops,
        text="pieces",
        sizes=lambda pieces, settings: piece_sizes(pieces),
        limits=LIMITS,
        none_first=True,
        attention=bert_attention,
        load_pretrained=_load_bert,
    ),
}


def contextual_of(settings: Section) -> str | None:
    """The directory of a model's frozen language model; `None` without one."""
    return getattr(settings, "contextual", None)


def pretrained_of(settings: Section) -> str | None:
    """The directory whose weights a model begins with; `None` without one."""
    has_any = MODELS[settings.name].load_pretrained
    return settings.pretrained if has_any else None


def build_model(config: Section, sizes: Any, no_answer: bool = False) -> "keras.Model":
    """Builds the model that `config.name` names, with untrained weights.

    Args:
        config: its settings.
        sizes: as `Model.sizes` gives them.
        no_answer: whether it can say that the context does not answer. Then its logits
            are `(batch, 1 + context_length)`, see `NoAnswerLogit`.
    """
    entry = MODELS[config.name]
    model = entry.build(config, sizes)
    # The model has the logit of no answer exactly where it is wanted.
    if no_answer == entry.none_first:
        return model
    import keras

    from qanet.layers.no_answer import NoAnswerLogit

    if entry.none_first:
        outputs = {name: logits[:, 1:] for name, logits in model.output.items()}
    else:
        # In single precision, as logits are.
        none = NoAnswerLogit(dtype="float32", name="no_answer")
        outputs = {name: none(logits) for name, logits in model.output.items()}
    return keras.Model(model.input, outputs, name=model.name)


def with_attention(model: "keras.Model", config: Section) -> "keras.Model":
    """The model with a further output `attention`, see `Model.attention`.

    Args:
        model: a reading model.
        config: its settings. Of a kind of model that does not tell its attention, the
            model is returned as it is.
    """
    attention = MODELS[config.name].attention
    if attention is None:
        return model
    import keras

    outputs = model.output | {"attention": attention(model)}
    return keras.Model(model.input, outputs, name=model.name)


def forward_flops(config: Section, sizes: Any, context: int, question: int) -> int:
    """Multiplications and additions of the products in one forward pass.

    Matrix products and convolutions count, 2 operations a multiply-add. What is not a
    product does not: norms, softmax, dropout, activations, look-ups.

    Args:
        config: the model's settings.
        sizes: as `Model.sizes` gives them.
        context, question: tokens of one example, padding included.
    """
    return MODELS[config.name].flops(config, sizes, context, question)
