"""Which functions belong to which model."""

import keras

from qanet.config import QANetConfig
from qanet.models.inputs import EmbeddingSizes
from qanet.models.qanet import build_qanet, qanet_flops

# Name: builder, and count of the operations of a forward pass.
MODELS = {"qanet": (build_qanet, qanet_flops)}


def build_model(config: QANetConfig, sizes: EmbeddingSizes) -> keras.Model:
    """Builds the model that `config.name` names, with untrained weights."""
    build, _ = MODELS[config.name]
    return build(config, sizes)


def forward_flops(
    config: QANetConfig, sizes: EmbeddingSizes, context: int, question: int
) -> int:
    """Multiplications and additions of the products in one forward pass.

    Matrix products and convolutions count, 2 operations a multiply-add. What is not a
    product does not: norms, softmax, dropout, activations, look-ups.

    Args:
        config: names the model.
        sizes: sizes of its embeddings.
        context, question: tokens of one example, padding included.
    """
    _, flops = MODELS[config.name]
    return flops(config, sizes, context, question)
