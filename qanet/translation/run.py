"""The run directory of a translation model.

Importing this imports no Keras, so that mistakes are told before it is waited for.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from qanet.errors import UserError
from qanet.files import DamagedFile, read_arrays, write_text
from qanet.settings import load_settings
from qanet.translation.config import ModelConfig, TranslationConfig
from qanet.translation.subwords import Subwords
from qanet.weights import assign_variables, save_variables

if TYPE_CHECKING:
    import keras


def build_translation_model(config: ModelConfig, pieces: int) -> "keras.Model":
    """Builds a model with random weights."""
    if config.name == "recurrent":
        from qanet.translation.recurrent import Recurrent

        return Recurrent(config, pieces)
    from qanet.translation.transformer import Transformer

    return Transformer(config, pieces)


class TranslationRun:
    """The directory of a translation model.

    Args:
        directory: its path; it need not exist yet.
    """

    def __init__(self, directory: str | Path):
        self.directory = Path(directory)
        self.config_path = self.directory / "config.json"
        self.subwords_path = self.directory / "subwords.model"
        self.weights_path = self.directory / "weights.npz"
        self.checkpoint_path = self.directory / "checkpoint.npz"
        self.history_path = self.directory / "history.csv"
        self.metrics_path = self.directory / "metrics.json"

    def save_config(self, config: TranslationConfig) -> None:
        """Stores the whole configuration."""
        write_text(self.config_path, config.model_dump_json(indent=2) + "\n")

    def load_config(self) -> TranslationConfig:
        """Reads the configuration; raises `UserError` where it cannot."""
        if not self.config_path.is_file():
            raise UserError(
                f"{self.directory}: not the directory of a translation model (it has "
                "no config.json); give the one that translate train made"
            )
        return load_settings(self.config_path, TranslationConfig)

    def save_weights(self, model: "keras.Model") -> None:
        """Stores the model's present weights."""
        save_variables(self.weights_path, _weights(model))

    def load_model(self) -> tuple["keras.Model", Subwords]:
        """Rebuilds the model and loads its weights.

        Raises:
            UserError: a file is missing, damaged or of another configuration.
        """
        config = self.load_config()
        subwords = Subwords.load(self.subwords_path)
        model = build_translation_model(config.model, len(subwords))
        try:
            assign_variables(_weights(model), read_arrays(self.weights_path))
        except OSError as error:
            raise UserError(
                f"{self.weights_path}: cannot be read: {error.strerror}"
            ) from None
        except (DamagedFile, ValueError) as error:
            raise UserError(
                f"{self.weights_path}: damaged or of another configuration ({error})"
            ) from None
        return model, subwords


def _weights(model: "keras.Model") -> dict[str, "keras.Variable"]:
    """The weights by number and name, since Keras counts layers from model to model."""
    return {f"{i}/{v.name}": v for i, v in enumerate(model.trainable_variables)}
