"""What a reader needs that ONNX Runtime computes: the directory of an ONNX export.

Neither Keras nor TensorFlow is needed.
"""

import os
from collections.abc import Callable, Mapping, Set
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qanet.checksums import check_checksums
from qanet.config import Config
from qanet.cores import own_cores
from qanet.errors import UserError, first_line, needing, reading
from qanet.files import parse_json
from qanet.models.registry import MODELS
from qanet.run import DEFAULT_THRESHOLD, Run
from qanet.settings import configure
from qanet.telemetry import refuse_telemetry
from qanet.text.encoders import ENCODERS, TextEncoder
from qanet.text.folded import SCALES_FILE, TABLE_FILE, FoldedTable, FoldedVocabulary
from qanet.text.pieces import PIECES_FILE
from qanet.text.vocabulary import WORDS_FILE
from qanet.utf8 import is_encodable

READER_FILE, NETWORK_FILE = "reader.json", "model.onnx"
# The network that makes columns of a word alone; of readers of words.
WORD_FILE = "words.onnx"
# Raise it when the files change.
FORMAT = 2
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
        unpadded: the contexts of a batch must be equally long.
        attends: the network also tells its attention.
    """

    predict: Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]
    vocabulary: TextEncoder
    config: Config
    threshold: float
    unpadded: bool
    attends: bool


def load_export(directory: str | os.PathLike, threads: int = 0) -> Export:
    """Reads an ONNX export.

    Args:
        directory: the export.
        threads: threads that compute a batch's logits; 0 takes all cores. Whatever
            they are, several threads may call what is read.

    Raises:
        UserError: a file is missing, damaged or of another version, or ONNX Runtime is
            not installed.
    """
    directory = Path(directory)
    path = directory / READER_FILE
    try:
        with reading(path):
            stored = dict(parse_json(path.read_bytes()))
        if stored["format"] != FORMAT:
            raise ValueError("made by another version")
        threshold = float(stored.get("threshold", DEFAULT_THRESHOLD))
        if not 0.0 <= threshold <= 1.0:
            raise ValueError("not a probability")
        values = dict(stored["config"])
    except (KeyError, OverflowError, TypeError, ValueError):
        raise UserError(
            f"{path}: damaged, or of another version; export the reader anew"
        ) from None
    config = configure(Config, values, [], str(path))
    # What reads the networks may crash on others; with other words it answers wrongly.
    check_checksums(directory, [path.name for path in reader_files(directory)])
    entry = MODELS[config.model.name]
    vocabulary = ENCODERS[entry.text].load_words(directory)
    columns = {*vocabulary.table([""])}
    network = _Network(directory / NETWORK_FILE, threads)
    if entry.text == "words":
        # Its little work needs one; more would wait at full speed for the next text
        # and keep the cores from the other network.
        word_side = _Network(directory / WORD_FILE, threads=1)
        word_side.check({"folded", *columns}, {"vectors"})
        columns |= word_side.outputs
        wanted = {name.partition("_")[2] for name in network.inputs}
        folded = FoldedTable.load(directory, len(vocabulary))
        vocabulary = FoldedVocabulary(
            vocabulary, folded, partial(_of_words, word_side), wanted
        )
    inputs = {f"{text}_{column}" for text in TEXTS for column in columns}
    network.check(inputs, {"start_logits", "end_logits"})
    # A network that is not told where contexts are real takes them as they are.
    unpadded = network.inputs.isdisjoint({"context_words", "context_pieces"})
    attends = "attention" in network.outputs
    return Export(network, vocabulary, config, threshold, unpadded, attends)


def _of_words(word_side: "_Network", columns: Mapping[str, np.ndarray]):
    """What the network makes of words, which it reads as one text."""
    outputs = word_side({name: column[None] for name, column in columns.items()})
    return {name: column[0] for name, column in outputs.items()}


def reader_files(directory: Path) -> list[Path]:
    """The files that tell a reader from others, of an export or of a run."""
    if is_export(directory):
        networks = (READER_FILE, NETWORK_FILE, WORD_FILE, TABLE_FILE, SCALES_FILE)
        names = (*networks, WORDS_FILE, PIECES_FILE)
        return [directory / name for name in names if (directory / name).exists()]
    run = Run(directory)
    words = run.vocabulary_directory.rglob("*")
    files = [run.config_path, run.weights_path, *sorted(filter(Path.is_file, words))]
    if run.no_answer_path.exists():
        files.append(run.no_answer_path)
    return files


class _Network:
    """A function that ONNX Runtime computes, from arrays by name to arrays by name.

    Args:
        path: its file.
        threads: threads that compute it; 0 takes all cores.

    Raises:
        UserError: there is no such file, it is damaged, or ONNX Runtime is not
            installed.
    """

    def __init__(self, path: Path, threads: int):
        refuse_telemetry()
        with needing(f"{path}: reading it needs ONNX Runtime", "onnxruntime"):
            import onnxruntime
        name = str(path)
        if not is_encodable(name):
            raise UserError(
                f"{name!a}: ONNX Runtime opens only names in UTF-8; rename it"
            )
        settings = onnxruntime.SessionOptions()
        # By itself it takes all cores of the machine, and no notice of a share of them.
        own = own_cores()
        share = own if own < (os.cpu_count() or 1) else 0
        settings.intra_op_num_threads = threads or share
        # It would keep a plan of the memory for each shape, of which there are many.
        settings.enable_mem_pattern = False
        try:
            self.session = onnxruntime.InferenceSession(
                name, settings, providers=["CPUExecutionProvider"]
            )
        except MemoryError:
            raise
        # Its errors have no class in common.
        except Exception as error:
            raise UserError(
                f"{path}: missing or damaged: {first_line(error)}"
            ) from None
        self.options = onnxruntime.RunOptions()
        # Gives the memory of a large batch back after it.
        self.options.add_run_config_entry(
            "memory.enable_memory_arena_shrinkage", "cpu:0"
        )
        self.path = path
        # What a network does not use is no input of it.
        self.inputs = {tensor.name for tensor in self.session.get_inputs()}
        self.outputs = {tensor.name for tensor in self.session.get_outputs()}

    def check(self, inputs: Set[str], outputs: Set[str]) -> None:
        """Raises `UserError` if it needs other inputs or lacks outputs."""
        if not inputs >= self.inputs or not outputs <= self.outputs:
            raise UserError(
                f"{self.path}: is not the network of this reader; export it anew"
            )

    def __call__(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        names = sorted(self.outputs)
        inputs = {name: arrays[name] for name in self.inputs}
        try:
            outputs = self.session.run(names, inputs, self.options)
        # As above; of files that do not belong together.
        except Exception as error:
            raise UserError(
                f"{self.path}: cannot compute: {first_line(error)}"
            ) from None
        return dict(zip(names, outputs, strict=True))
