"""Which reading models there are, and what each of them offers.

A model is one file of this package: its settings, and what builds it. Those files
import Keras where they build and not before, so that the configuration, which knows
the settings of all models, is checked before anybody waits for Keras.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qanet.models.attention_over_attention import (
    AoAConfig,
    ClozeConfig,
    aoa_flops,
    build_aoa,
    build_cloze,
    cloze_flops,
)
from qanet.models.bidaf import BiDAFConfig, bidaf_flops, build_bidaf
from qanet.models.limits import ReadingLimits
from qanet.models.qanet import QANetConfig, build_qanet, qanet_flops
from qanet.models.slqa import SLQAConfig, build_slqa, slqa_flops
from qanet.models.words import EmbeddingSizes
from qanet.settings import Section

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class Model:
    """A reading model.

    Attributes:
        settings: its section of the configuration; `name` is its name here.
        build: makes it from its settings and the vocabulary's sizes, with the inputs of
            `qanet.models.inputs` and the outputs `start_logits` and `end_logits`,
            float32 `(batch, context_length)`.
        flops: counts the operations of a forward pass, see `forward_flops`.
        attention: the layer whose `weights_of(*inputs)` tells, as its first tensor
            `(batch, context_length, question_length)`, how each word of the context
            attends to the question; empty where there is none.
        limits: how long texts it reads.
    """

    settings: type[Section]
    build: "Callable[[Section, EmbeddingSizes], keras.Model]"
    flops: Callable[[Section, EmbeddingSizes, int, int], int]
    attention: str = ""
    limits: ReadingLimits = field(default_factory=ReadingLimits)


MODELS = {
    "qanet": Model(
        QANetConfig, build_qanet, qanet_flops, attention="context_query_attention"
    ),
    "bidaf": Model(BiDAFConfig, build_bidaf, bidaf_flops, attention="attention"),
    "slqa": Model(SLQAConfig, build_slqa, slqa_flops, attention="co_attention"),
    "aoa": Model(AoAConfig, build_aoa, aoa_flops, attention="attention"),
    "aoa-cloze": Model(ClozeConfig, build_cloze, cloze_flops, attention="attention"),
}


def build_model(
    config: Section, sizes: EmbeddingSizes, no_answer: bool = False
) -> "keras.Model":
    """Builds the model that `config.name` names, with untrained weights.

    Args:
        config: its settings.
        sizes: sizes of the vocabulary.
        no_answer: whether it can say that the context does not answer. Then its logits
            are `(batch, 1 + context_length)`, see `NoAnswerLogit`.
    """
    model = MODELS[config.name].build(config, sizes)
    if not no_answer:
        return model
    import keras

    from qanet.layers.no_answer import NoAnswerLogit

    # In single precision, as logits are.
    none = NoAnswerLogit(dtype="float32", name="no_answer")
    outputs = {name: none(logits) for name, logits in model.output.items()}
    return keras.Model(model.input, outputs, name=model.name)


def forward_flops(
    config: Section, sizes: EmbeddingSizes, context: int, question: int
) -> int:
    """Multiplications and additions of the products in one forward pass.

    Matrix products and convolutions count, 2 operations a multiply-add. What is not a
    product does not: norms, softmax, dropout, activations, look-ups.

    Args:
        config: the model's settings.
        sizes: sizes of its embeddings.
        context, question: tokens of one example, padding included.
    """
    return MODELS[config.name].flops(config, sizes, context, question)
