"""The run directory: all that a trained model needs, on disk.

    config.json      the whole configuration
    vocabulary/      words, characters and, where they are frozen, word vectors; a
                     copy of the language model of model.contextual
    weights.npz      averaged weights of the best evaluation
    checkpoints/     resumable states of the training
    history.csv      one row an evaluation
    metrics.json     the last whole evaluation on dev
    no_answer.json   with data.no_answer: the threshold that was best on dev, or until
                     then the one to begin with
    data.json        what was read, mended and left out, and its digest
    tensorboard/     the same curves for TensorBoard

Every file but those of tensorboard/, which grow, is written under a temporary name and
then renamed, so none is ever seen half-written.

Importing this imports no Keras, so that mistakes are told before it is waited for.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from qanet.config import Config
from qanet.errors import UserError
from qanet.files import parse_json, write_text
from qanet.models.registry import MODELS, build_model, contextual_of
from qanet.models.words import word_embedding
from qanet.run_directory import RunDirectory
from qanet.text.encoders import ENCODERS, StoredEncoder
from qanet.text.vocabulary import CONTEXTUAL_DIRECTORY
from qanet.weights import saved_variables

if TYPE_CHECKING:
    import keras

# Weights stay in single precision, and so do softmax, norms, logits and loss.
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}

# The probability of "no answer" above which that is the answer, until dev tells better.
DEFAULT_THRESHOLD = 0.5


@dataclass(frozen=True)
class TrainedModel:
    """What a run directory holds.

    Attributes:
        model: the model with its best weights.
        vocabulary: the vocabulary it was trained with.
        config: the configuration it was trained with.
        threshold: the probability of "no answer" above which that is the best answer,
            for models that know it.
    """

    model: "keras.Model"
    vocabulary: StoredEncoder
    config: Config
    threshold: float = DEFAULT_THRESHOLD


class Run(RunDirectory):
    """The run directory of a reader.

    Args:
        directory: its path; it need not exist yet.
    """

    settings = Config
    unknown = (
        "not a run directory (it has no config.json); give the directory that the "
        "training printed"
    )
    measured = ("exact_match", "f1", "total")

    def __init__(self, directory: str | os.PathLike):
        super().__init__(directory)
        self.vocabulary_directory = self.directory / "vocabulary"
        self.no_answer_path = self.directory / "no_answer.json"

    def load_vocabulary(self) -> StoredEncoder:
        """Reads the vocabulary; raises `UserError` where it is missing or damaged."""
        settings = self.load_config().model
        vocabulary = ENCODERS[MODELS[settings.name].text].load(
            self.vocabulary_directory
        )
        if not contextual_of(settings):
            return vocabulary
        # Here, so that other readers do without the libraries that it needs.
        from qanet.frozen import open_encoder

        encoder = open_encoder(
            self.vocabulary_directory / CONTEXTUAL_DIRECTORY, settings.contextual_layers
        )
        return replace(vocabulary, contextual=encoder)

    def load(self, precision: str | None = None) -> TrainedModel:
        """Rebuilds the model from the configuration and loads its best weights.

        Args:
            precision: as `training.precision`, what to compute in; by default what it
                was trained in.

        Raises:
            UserError: this is not a run directory, or something in it is missing,
                damaged or of another configuration.
        """
        config = self.load_config()
        if precision:
            training = config.training.model_copy(update={"precision": precision})
            config = config.model_copy(update={"training": training})
        vocabulary = self.load_vocabulary()
        model = build_run_model(config, vocabulary)
        self.load_weights(model)
        return TrainedModel(model, vocabulary, config, self.load_threshold())

    def save_threshold(self, threshold: float) -> None:
        """Stores the probability above which "no answer" is the answer."""
        text = json.dumps({"threshold": threshold}, indent=2)
        write_text(self.no_answer_path, text + "\n")

    def load_threshold(self) -> float:
        """Reads that probability; the default where none was chosen yet.

        Raises:
            UserError: the file is damaged.
        """
        if not self.no_answer_path.exists():
            return DEFAULT_THRESHOLD
        try:
            threshold = float(parse_json(self.no_answer_path.read_bytes())["threshold"])
            if not 0.0 <= threshold <= 1.0:
                raise ValueError("not a probability")
            return threshold
        except (OSError, OverflowError, ValueError, KeyError, TypeError):
            raise UserError(
                f"{self.no_answer_path}: damaged; remove it, then the threshold is "
                f"{DEFAULT_THRESHOLD}"
            ) from None


def embedding_sizes(config: Config, vocabulary: StoredEncoder) -> Any:
    """What the configured model must know of a vocabulary."""
    return MODELS[config.model.name].sizes(vocabulary, config.vocabulary)


@contextlib.contextmanager
def precision(name: str) -> Iterator[None]:
    """Within this context layers are made that compute in a `training.precision`."""
    import keras

    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy(POLICIES[name])
    try:
        yield
    finally:
        keras.config.set_dtype_policy(policy)


def build_run_model(config: Config, vocabulary: StoredEncoder) -> "keras.Model":
    """Builds the configured model on a vocabulary, with its frozen word vectors."""
    sizes = embedding_sizes(config, vocabulary)
    with precision(config.training.precision):
        model = build_model(config.model, sizes, config.data.no_answer)
    # Now, not when the first weights are to be stored.
    saved_variables(model)
    if vocabulary.vectors is not None:
        word_embedding(model).words.load_table(vocabulary.vectors.astype("float32"))
    return model
