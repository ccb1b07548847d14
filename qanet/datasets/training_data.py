"""What is trained on, and the one file that it can be packed into.

The packed data set is for machines that have no TensorFlow, no network or little room:
it holds what a training needs of its data and no more.
"""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from qanet.config import ORIGINAL
from qanet.datasets.contextual import ContextualVectors
from qanet.datasets.features import (
    Features,
    build_features,
    from_arrays,
    to_arrays,
)
from qanet.datasets.soft_targets import (
    TeacherTargets,
    check_teacher,
)
from qanet.datasets.squad import COUNTS, Example, parse_squad, to_document
from qanet.errors import UserError, reading
from qanet.files import (
    DamagedFile,
    pack_json,
    read_arrays,
    unpack_json,
    write_file,
)
from qanet.text.encoders import ENCODERS, StoredEncoder

# Raise it when the arrays of the packed data set change.
FORMAT = 4
TRAIN, TEACHER = "train/", "teacher/"


@dataclass
class TrainingData:
    """What is trained on, what is evaluated on, and the words of both.

    Attributes:
        train: tokens of the training set, of `original` and then of all others.
        sources: examples of each of these, by name, in the order of `train`.
        dev_examples: the dev set.
        dev: its tokens.
        vocabulary: words, characters and vectors, or word pieces.
        counts: for `train`, `dev` and each augmented set, how much was read and mended.
        teacher: what the teacher says of `train`; `None` without one.
        contextual: contextual vectors of `train`; `None` without a language model.
    """

    train: Features
    sources: dict[str, int]
    dev_examples: list[Example]
    dev: Features
    vocabulary: StoredEncoder
    counts: dict[str, dict[str, int]]
    teacher: TeacherTargets | None = None
    contextual: ContextualVectors | None = None

    def digests(self) -> dict[str, str]:
        """Tell the data from all others: training sets with the teacher, and dev."""
        digest = hashlib.sha256(repr(self.sources).encode())
        for name, array in _train_arrays(self).items():
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array))
        dev = pack_json(to_document(self.dev_examples))
        return {
            "digest": digest.hexdigest(),
            "dev_digest": hashlib.sha256(dev).hexdigest(),
        }


def describe_counts(counts: dict[str, int]) -> str:
    """What was read of a set, as words: the questions, the rest where there is any."""
    shown = {
        "paragraphs": "paragraphs",
        "impossible": "without an answer",
        "answers_snapped": "answers widened to whole tokens",
        "offsets_repaired": "answer offsets repaired",
        "answers_not_found": "answers not found in their context",
    }
    parts = [f"{counts['questions']:,} questions"]
    parts += [f"{counts[key]:,} {name}" for key, name in shown.items() if counts[key]]
    return ", ".join(parts)


def save_packed(path: Path, data: TrainingData) -> None:
    """Writes the data into one compressed file.

    Training reads no text, so of the training set only the numbers are kept. Dev is
    kept as text and tokenised again.

    Raises:
        UserError: the file cannot be written.
    """
    arrays = {
        "format": np.int64(FORMAT),
        "sources": pack_json(data.sources),
        "counts": pack_json(data.counts),
        "dev": pack_json(to_document(data.dev_examples)),
        "vocabulary": pack_json(data.vocabulary.to_fields()),
    }
    if data.vocabulary.vectors is not None:
        arrays["vectors"] = data.vocabulary.vectors
    arrays |= _train_arrays(data)
    write_file(path, lambda file: np.savez_compressed(file, **arrays))


def _train_arrays(data: TrainingData) -> dict[str, np.ndarray]:
    """What is trained on, by the names of a packed data set. It has no text."""
    train = replace(data.train, context_spans=np.zeros((0, 2), dtype=np.int32))
    arrays = {f"{TRAIN}{name}": array for name, array in to_arrays(train).items()}
    targets = vars(data.teacher) if data.teacher else {}
    return arrays | {f"{TEACHER}{name}": np.array(v) for name, v in targets.items()}


def load_packed(path: str | Path, text: str = "words") -> TrainingData:
    """Reads what `save_packed` wrote.

    Args:
        path: the file.
        text: the text encoder of the model that is to be trained.

    Raises:
        UserError: the file cannot be read, is damaged or of another version.
    """
    try:
        with reading(path):
            arrays = read_arrays(Path(path))
        if int(arrays["format"]) != FORMAT:
            raise ValueError("made by another version")
        fields = unpack_json(arrays["vocabulary"])
        if text not in fields:
            raise UserError(
                f"{path}: packed for a model of other tokens than {text}; make it anew "
                "with python -m qanet pack --preset and the model's preset"
            )
        vocabulary = ENCODERS[text].from_fields(fields, lambda: arrays["vectors"])
        train = from_arrays(_below(TRAIN, arrays))
        teacher = _teacher_of(arrays, train)
        examples = parse_squad(unpack_json(arrays["dev"]), str(path)).examples
        names = (*COUNTS, "answers_snapped")
        counts = {
            split: {name: int(stored[name]) for name in names}
            for split, stored in dict(unpack_json(arrays["counts"])).items()
        }
        sources = {
            name: int(size)
            for name, size in dict(unpack_json(arrays["sources"])).items()
        }
        if ORIGINAL not in sources or sum(sources.values()) != len(train):
            raise ValueError("the training sets do not add up")
        if min(sources.values()) < 1:
            raise ValueError("a training set has no questions")
        if counts.keys() != {"train", "dev", *sources} - {ORIGINAL}:
            raise ValueError("counted other sets than there are")
    except (DamagedFile, KeyError, OverflowError, TypeError, ValueError):
        raise UserError(
            f"{path}: damaged, or not a file of this version; make it anew with "
            "python -m qanet pack"
        ) from None
    dev = build_features(examples, vocabulary.tokens)
    return TrainingData(train, sources, examples, dev, vocabulary, counts, teacher)


def _teacher_of(
    arrays: dict[str, np.ndarray], train: Features
) -> TeacherTargets | None:
    """What a packed data set's teacher says; `None` where it has none.

    Raises:
        KeyError, TypeError, ValueError: the arrays are not such a teacher's.
    """
    targets = _below(TEACHER, arrays)
    if not targets:
        return None
    none_first = targets["none_first"]
    if none_first.shape or none_first.dtype != bool:
        raise ValueError("none_first is not one boolean")
    teacher = TeacherTargets(**targets | {"none_first": bool(none_first)})
    check_teacher(teacher, train)
    return teacher


def _below(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays whose names have a prefix, by the rest of their names."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
