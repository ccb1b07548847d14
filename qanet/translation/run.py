"""The run directory of a translation model.

Importing this imports no Keras, so that mistakes are told before it is waited for.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from qanet.run_directory import RunDirectory
from qanet.translation.config import TranslationConfig, TranslationModelConfig
from qanet.translation.subwords import Subwords

if TYPE_CHECKING:
    import keras


def build_translation_model(
    config: TranslationModelConfig, pieces: int
) -> "keras.Model":
    """Builds a model with random weights."""
    if config.name == "recurrent":
        from qanet.translation.recurrent import Recurrent

        return Recurrent(config, pieces)
    from qanet.translation.transformer import Transformer

    return Transformer(config, pieces)


class TranslationRun(RunDirectory):
    """The directory of a translation model.

    Args:
        directory: its path; it need not exist yet.
    """

    settings = TranslationConfig
    unknown = (
        "not the directory of a translation model (it has no config.json); give the "
        "one that translate train made"
    )
    measured = ("pairs", "bleu_greedy", "bleu_beam_5")

    def __init__(self, directory: str | Path):
        super().__init__(directory)
        self.subwords_path = self.directory / "subwords.model"

    def weights_of(self, model: "keras.Model") -> "dict[str, keras.Variable]":
        """By number and name, since Keras counts layers from model to model."""
        return {f"{i}/{v.name}": v for i, v in enumerate(model.trainable_variables)}

    def load_model(self) -> tuple["keras.Model", Subwords]:
        """Rebuilds the model and loads its weights.

        Raises:
            UserError: a file is missing, damaged or of another configuration.
        """
        config = self.load_config()
        subwords = Subwords.load(self.subwords_path)
        model = build_translation_model(config.model, len(subwords))
        self.load_weights(model)
        return model, subwords
