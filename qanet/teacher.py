"""Writes down what a reader says of a training set, for others to learn from."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from qanet.console import progress_bar
from qanet.datasets.features import build_features
from qanet.datasets.soft_targets import (
    SoftTargets,
    fingerprint,
    join_targets,
    load_targets,
    made_targets,
    save_targets,
)
from qanet.datasets.squad import Example
from qanet.errors import UserError, already_there, writing
from qanet.files import digest_of, locked, parse_json, write_text
from qanet.onnx_reader import reader_files
from qanet.reader import Reader

# Questions that are read and then stored, so that no more of the work is lost.
PART = 2000
# The file in the directory of parts that tells what makes them.
KEY = "key.json"


def teach(
    reader: Reader, examples: Sequence[Example], data: str, output: Path, key: str
) -> None:
    """Writes the soft targets of examples, part by part.

    The parts lie in the directory `parts_of(output)` until all of them are there; one
    that is found whole is not made again. Where the file is there too, it was stopped
    before it had removed them.

    Args:
        reader: the teacher.
        examples: what it reads.
        data: their files, for messages.
        output: the file.
        key: as `key_of` gives it.

    Raises:
        UserError: a file cannot be written, a question is too long for the reader,
            parts lie there that another reader made or that are of other data, another
            process makes them, or the file is there and not what they make.
    """
    reader.check_questions(examples)
    directory = parts_of(output)
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    with locked(directory):
        _check_parts(directory, key)
        if output.exists():
            _check_whole(directory, output, examples)
        else:
            write_text(directory / KEY, json.dumps(key))
            targets = _read(reader, examples, data, directory)
            save_targets(output, join_targets(targets))
        # The key goes last: without it the other parts would be refused at the next
        # start.
        for path in directory.glob("*.npz"):
            path.unlink()
        shutil.rmtree(directory)


def _read(
    reader: Reader, examples: Sequence[Example], data: str, directory: Path
) -> list[SoftTargets]:
    """All parts, those that are not there yet read and stored."""
    parts = []
    with progress_bar(total=len(examples), desc="reading", unit="question") as bar:
        for first in range(0, len(examples), PART):
            part = examples[first : first + PART]
            path = directory / f"{first:09}.npz"
            try:
                parts.append(load_targets(path))
            except UserError:  # It is not there yet, or damaged.
                features = build_features(part, reader.vocabulary.tokens)
                logits = reader.logits(part, features)
                parts.append(made_targets(part, features, logits, data))
                save_targets(path, parts[-1])
            bar.update(len(part))
    return parts


def parts_of(output: Path) -> Path:
    """Where the parts of an unfinished file lie."""
    return output.with_name(f"{output.name}.parts")


def key_of(readers: Sequence[Path], examples: Sequence[Example]) -> str:
    """Tells readers and what they read from all others.

    Args:
        readers: run directories or ONNX exports.
        examples: what they read.

    Raises:
        UserError: a file of a reader cannot be read.
    """
    files = [path for directory in readers for path in reader_files(directory)]
    # Formerly no answer was not told of each side.
    seed = "sides" if any(example.impossible for example in examples) else ""
    return digest_of(files, seed + "".join(map(fingerprint, examples)))


def _check_parts(directory: Path, key: str) -> None:
    path = directory / KEY
    try:
        found = parse_json(path.read_bytes())
    except FileNotFoundError:
        _check_no_parts(directory)
        return
    except (OSError, ValueError):
        found = None
    if found != key:
        raise UserError(
            f"{directory}: holds parts of another teacher or of other data; remove it, "
            "or give another --output"
        )


def _check_no_parts(directory: Path) -> None:
    """Without a key, refuses all files but an unfinished key."""
    if any(not path.name.startswith(f".{KEY}.") for path in directory.iterdir()):
        raise UserError(
            f"{directory}: holds files, but no {KEY} of unfinished work; move them "
            "away, or give another --output"
        )


def _check_whole(directory: Path, output: Path, examples: Sequence[Example]) -> None:
    is_of_parts = (directory / KEY).exists()
    wanted = set(map(fingerprint, examples))
    if not is_of_parts or load_targets(output).questions.keys() != wanted:
        raise already_there(output)
