"""The run directory of a pre-training.

Importing this imports no Keras, so that mistakes are told before it is waited for.
"""

import os

from qanet.models.bert_weights import ENCODER_DIRECTORY
from qanet.pretraining.config import BiLMPretrainingConfig, MLMPretrainingConfig
from qanet.run_directory import RunDirectory


class PretrainingRun(RunDirectory):
    """The directory of a pre-training, whatever its objective.

    When it has come to its end, `encoder/` holds the best weights in the layout of
    public models.

    Args:
        directory: its path; it need not exist yet.
    """

    unknown = (
        "not the directory of a pre-training (it has no config.json); give the one "
        "that pretrain made"
    )

    def __init__(self, directory: str | os.PathLike):
        super().__init__(directory)
        self.vocabulary_directory = self.directory / "vocabulary"
        self.encoder_directory = self.directory / ENCODER_DIRECTORY


class MLMRun(PretrainingRun):
    """That of a masked language model: `encoder/` is for `model.pretrained`."""

    settings = MLMPretrainingConfig
    measured = ("step", "masked_loss", "masked_accuracy", "next_sentence_accuracy")


class BiLMRun(PretrainingRun):
    """That of a bidirectional language model: `encoder/` is for `model.contextual`, in
    the layout of public ELMo models."""

    settings = BiLMPretrainingConfig
    measured = ("step", "perplexity")

    def __init__(self, directory: str | os.PathLike):
        super().__init__(directory)
        self.words_path = self.vocabulary_directory / "words.txt"
