"""The run directory of a pre-training.

Importing this imports no Keras, so that mistakes are told before it is waited for.
"""

import os

from qanet.pretraining.bilm_config import BiLMPretrainingConfig
from qanet.pretraining.mlm_config import MLMPretrainingConfig
from qanet.run import RunDirectory


class MLMRun(RunDirectory):
    """The directory of a pre-training.

    When it has come to its end, `encoder/` holds the best weights in the layout of
    public models, which `model.pretrained` of a reader names.

    Args:
        directory: its path; it need not exist yet.
    """

    settings = MLMPretrainingConfig
    unknown = (
        "not the directory of a pre-training (it has no config.json); give the one "
        "that pretrain made"
    )

    def __init__(self, directory: str | os.PathLike):
        super().__init__(directory)
        self.vocabulary_directory = self.directory / "vocabulary"
        self.encoder_directory = self.directory / "encoder"


class BiLMRun(MLMRun):
    """The same of a bidirectional language model.

    `encoder/` is in the layout of public ELMo models, for `model.contextual`.
    """

    settings = BiLMPretrainingConfig

    def __init__(self, directory: str | os.PathLike):
        super().__init__(directory)
        self.words_path = self.vocabulary_directory / "words.txt"
