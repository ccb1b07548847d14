"""What a reader needs that ONNX Runtime computes: the directory of an ONNX export.

Neither Keras nor TensorFlow is needed.
"""

import json
import os
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qanet.config import Config
from qanet.errors import UserError, reading_text
from qanet.models.registry import MODELS
from qanet.run import DEFAULT_THRESHOLD, Run
from qanet.settings import configure
from qanet.text.encoders import ENCODERS, TextEncoder

READER_FILE, NETWORK_FILE = "reader.json", "model.onnx"
# Raise it when the files change.
FORMAT = 1
TEXTS = ("context", "question")


def is_export(directory: str | os.PathLike) -> bool:
    """Whether a directory holds an ONNX export, not a run."""
    return (Path(directory) / READER_FILE).is_file()


def described(config: Config, threshold: float) -> dict[str, Any]:
    """What `reader.json` holds.

    Args:
        config: the configuration that the reader was trained with.
        threshold: the probability of "no answer" above which that is the answer.
    """
    return {
        "format": FORMAT,
        "threshold": threshold,
        "config": config.model_dump(mode="json"),
    }


class Export(NamedTuple):
    """What an ONNX export holds, as `qanet.reader.Reader` takes it.

    Attributes:
        predict: computes logits.
        vocabulary, config, threshold: as of the run that was exported.
    """

    predict: Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]
    vocabulary: TextEncoder
    config: Config
    threshold: float


def load_export(directory: str | os.PathLike) -> Export:
    """Reads an ONNX export.

    Raises:
        UserError: a file is missing, damaged or of another version, or ONNX Runtime is
            not installed.
    """
    directory = Path(directory)
    path = directory / READER_FILE
    try:
        with reading_text(path):
            stored = dict(json.loads(path.read_bytes()))
        if stored["format"] != FORMAT:
            raise ValueError("made by another version")
        threshold = float(stored.get("threshold", DEFAULT_THRESHOLD))
        if not 0.0 <= threshold <= 1.0:
            raise ValueError("not a probability")
        values = dict(stored["config"])
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"{path}: damaged, or of another version; export the reader anew"
        ) from None
    config = configure(Config, values, [], str(path))
    vocabulary = ENCODERS[MODELS[config.model.name].text].load_words(directory)
    columns = vocabulary.table([""])
    inputs = {f"{text}_{column}" for text in TEXTS for column in columns}
    predict = _network(directory / NETWORK_FILE, inputs)
    return Export(predict, vocabulary, config, threshold)


def reader_files(directory: Path) -> list[Path]:
    """The files that tell a reader from others, of an export or of a run."""
    if is_export(directory):
        return [directory / READER_FILE, directory / NETWORK_FILE]
    run = Run(directory)
    return [run.config_path, run.weights_path]


def _network(path: Path, inputs: Set[str]):
    """What computes the logits of a batch of these inputs."""
    try:
        import onnxruntime
    except ImportError:
        raise UserError(
            f"{path}: reading it needs ONNX Runtime: pip install onnxruntime"
        ) from None
    try:
        session = onnxruntime.InferenceSession(
            str(path), providers=["CPUExecutionProvider"]
        )
    # Its errors have no class in common.
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: missing or damaged: {reason}") from None
    # What a network does not use is no input of it.
    wanted = [tensor.name for tensor in session.get_inputs()]
    names = [tensor.name for tensor in session.get_outputs()]
    if not inputs.issuperset(wanted) or {"start_logits", "end_logits"} - {*names}:
        raise UserError(f"{path}: is not the network of this reader; export it anew")

    def predict(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        outputs = session.run(names, {name: inputs[name] for name in wanted})
        return dict(zip(names, outputs, strict=True))

    return predict
