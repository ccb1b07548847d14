"""Which function builds which model."""

from collections.abc import Callable

import keras

from qanet.config import QANetConfig
from qanet.models.inputs import EmbeddingSizes
from qanet.models.qanet import build_qanet

BUILDERS: dict[str, Callable[..., keras.Model]] = {"qanet": build_qanet}


def build_model(config: QANetConfig, sizes: EmbeddingSizes) -> keras.Model:
    """Builds the model that `config.name` names, with untrained weights."""
    return BUILDERS[config.name](config, sizes)
