"""Soft targets: what a teacher says of a data set, in a file, for students to learn.

A teacher may split texts into other tokens than its student. So the file holds its
tokens' places in the text, and `aligned` brings what it says to the student's tokens.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qanet.console import printable
from qanet.datasets.features import Features, join_splits, splits_of
from qanet.datasets.squad import Example
from qanet.decoding import ContextLogits, probabilities
from qanet.errors import UserError, reading
from qanet.files import DamagedFile, pack_json, read_arrays, unpack_json, write_file
from qanet.token_alignment import align

# Raise it when the arrays change.
FORMAT = 1
ARRAYS = (
    "spans",
    "context_splits",
    "context_of",
    "logits",
    "logits_splits",
    "no_answer",
)


@dataclass(frozen=True)
class SoftTargets:
    """What a teacher says of questions.

    Attributes:
        questions: where each question stands below, by its fingerprint.
        data: the data set's name, for messages.
        spans: int32 `(context tokens, 2)`, character offsets of the teacher's tokens.
        context_splits: int64 `(contexts + 1,)`, the first token of each context.
        context_of: int32 `(questions,)`, the context of each question.
        logits: float16 `(2, question tokens)`, start and end logits of each question's
            context, question after question.
        logits_splits: int64 `(questions + 1,)`, the first column of each question.
        no_answer: float16 `(questions,)`; -inf where the teacher cannot tell.
    """

    questions: dict[str, int]
    data: str
    spans: np.ndarray
    context_splits: np.ndarray
    context_of: np.ndarray
    logits: np.ndarray
    logits_splits: np.ndarray
    no_answer: np.ndarray

    def spans_of(self, question: int) -> np.ndarray:
        """Where the tokens of a question's context stand, int32 `(tokens, 2)`."""
        context = self.context_of[question]
        return self.spans[slice(*self.context_splits[context : context + 2])]

    def logits_of(self, question: int) -> ContextLogits:
        """What the teacher says of a question."""
        tokens = self.logits[:, slice(*self.logits_splits[question : question + 2])]
        return ContextLogits(tokens, float(self.no_answer[question]))


@dataclass(frozen=True)
class TeacherTargets:
    """What a teacher says, on the tokens of the student that learns from it.

    Attributes:
        values: float16 `(2, ...)`, logarithms of the probabilities of start and end,
            example after example; with `none_first` that of no answer before those of
            the context's tokens. -inf where the probability is 0.
        splits: int64 `(examples + 1,)`, the first column of each example; an example
            that the teacher has not seen has none.
        none_first: whether the student can say that there is no answer.
    """

    values: np.ndarray
    splits: np.ndarray
    none_first: bool


def fingerprint(example: Example) -> str:
    """Tells a question on a context from all others."""
    text = f"{example.id}\0{example.question}\0{example.context}"
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12)
    return digest.hexdigest()


def made_targets(
    examples: Sequence[Example],
    features: Features,
    logits: Sequence[ContextLogits],
    data: str,
) -> SoftTargets:
    """Puts together what a teacher says of all of these examples.

    Args:
        examples: the examples.
        features: their tokens, as the teacher has them.
        logits: what it says of each.
        data: the data set's name.
    """
    sizes = [one.tokens.shape[1] for one in logits]
    return SoftTargets(
        questions={fingerprint(example): i for i, example in enumerate(examples)},
        data=data,
        spans=features.context_spans,
        context_splits=features.context_splits,
        context_of=features.context_of,
        logits=np.concatenate([one.tokens for one in logits], axis=1).astype("float16"),
        logits_splits=splits_of(sizes),
        no_answer=np.array([one.no_answer for one in logits], dtype="float16"),
    )


def join_targets(parts: Sequence[SoftTargets]) -> SoftTargets:
    """The questions of several parts, one after the other."""

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name) for part in parts], axis=-1)

    questions: dict[str, int] = {}
    for part in parts:
        questions |= {key: len(questions) + i for key, i in part.questions.items()}
    firsts = np.cumsum([0, *(len(part.context_splits) - 1 for part in parts[:-1])])
    contexts = [part.context_of + n for n, part in zip(firsts, parts, strict=True)]
    return SoftTargets(
        questions=questions,
        data=parts[0].data,
        spans=np.concatenate([part.spans for part in parts]),
        context_splits=join_splits([part.context_splits for part in parts]),
        context_of=np.concatenate(contexts).astype("int32"),
        logits=joined("logits"),
        logits_splits=join_splits([part.logits_splits for part in parts]),
        no_answer=joined("no_answer"),
    )


def save_targets(path: Path, targets: SoftTargets) -> None:
    """Writes the file; raises `UserError` where it cannot be written."""
    arrays = {name: getattr(targets, name) for name in ARRAYS}
    arrays |= {
        "format": np.int64(FORMAT),
        "data": pack_json(targets.data),
        "questions": pack_json(list(targets.questions)),
    }
    write_file(path, lambda file: np.savez(file, **arrays))


def load_targets(path: str | Path) -> SoftTargets:
    """Reads what `save_targets` wrote.

    Raises:
        UserError: the file cannot be read, is damaged, or is something else.
    """
    try:
        with reading(path):
            arrays = read_arrays(Path(path))
        if int(arrays["format"]) != FORMAT:
            raise ValueError("made by another version")
        questions = [str(key) for key in unpack_json(arrays["questions"])]
        targets = SoftTargets(
            questions={key: i for i, key in enumerate(questions)},
            data=str(unpack_json(arrays["data"])),
            **{name: arrays[name] for name in ARRAYS},
        )
        _check(targets)
    except (
        DamagedFile,
        KeyError,
        IndexError,
        OverflowError,
        TypeError,
        ValueError,
    ):
        raise UserError(
            f"{path}: damaged, or no soft targets of this version; make them with "
            "python -m qanet teach"
        ) from None
    return targets


def _check(targets: SoftTargets) -> None:
    """Raises `ValueError` where the arrays do not go together."""
    count = len(targets.questions)
    contexts = targets.context_of
    sizes = np.diff(targets.context_splits)
    whole = ("spans", "context_splits", "context_of", "logits_splits")
    if not (
        all(getattr(targets, name).dtype.kind == "i" for name in whole)
        and targets.logits_splits.shape == (count + 1,)
        and targets.context_splits.ndim == 1
        and targets.logits.dtype == targets.no_answer.dtype == np.float16
        and targets.spans.shape == (targets.context_splits[-1], 2)
        and targets.logits.shape == (2, targets.logits_splits[-1])
        and targets.no_answer.shape == contexts.shape == (count,)
        and targets.context_splits[0] == targets.logits_splits[0] == 0
        and (sizes >= 0).all()
        and (contexts >= 0).all()
        and (sizes[contexts] == np.diff(targets.logits_splits)).all()
    ):
        raise ValueError("arrays do not go together")


def check_teacher(teacher: TeacherTargets, features: Features) -> None:
    """Raises `ValueError` where it says something else than of these examples."""
    values, splits = teacher.values, teacher.splits
    if not (
        splits.dtype.kind == "i"
        and splits.shape == (len(features) + 1,)
        and splits[0] == 0
        and values.dtype == np.float16
        and values.shape == (2, splits[-1])
        and not np.isnan(values).any()
    ):
        raise ValueError("the teacher's arrays do not go together")
    sizes, first = np.diff(splits), int(teacher.none_first)
    if ((sizes != 0) & (sizes != features.context_lengths + first)).any():
        raise ValueError("the teacher is of other data")


def aligned(
    targets: SoftTargets,
    examples: Sequence[Example],
    features: Features,
    none_first: bool,
    required: int,
    names: tuple[str, str],
) -> TeacherTargets:
    """Brings what a teacher says to the tokens of its student.

    Args:
        targets: what it says.
        examples: what the student is trained on.
        features: these examples in the student's tokens.
        none_first: whether the student can say that there is no answer.
        required: how many of the first examples the teacher must have seen; others
            that it has not seen are not taught.
        names: of the file of the targets and of these first examples' file, for
            messages.

    Raises:
        UserError: the teacher has not seen all that is required, or cannot say that
            there is no answer where the student can.
    """
    _check_knows(targets, examples[:required], names)
    if none_first and not np.isfinite(targets.no_answer).all():
        raise UserError(
            f"{names[0]}: its teacher cannot say that there is no answer; take one "
            "that was trained with data.no_answer, or train without it"
        )
    parts, sizes = [], np.zeros(len(examples), dtype=np.int64)
    for example, key in enumerate(map(fingerprint, examples)):
        question = targets.questions.get(key)
        if question is None:
            continue
        logits = targets.logits_of(question)
        if not none_first:
            logits = logits._replace(no_answer=-np.inf)
        found = align(
            probabilities(logits),
            targets.spans_of(question),
            features.spans_of(example),
        )
        with np.errstate(divide="ignore"):
            logits = np.log(found[:, 0 if none_first else 1 :])
        parts.append(logits.astype("float16"))
        sizes[example] = parts[-1].shape[1]
    values = np.concatenate(parts, axis=1)
    return TeacherTargets(values, splits_of(sizes), none_first)


def _check_knows(
    targets: SoftTargets, examples: Sequence[Example], names: tuple[str, str]
) -> None:
    """Raises `UserError` where the teacher has not seen one of these examples."""
    teacher, data = names
    missing = [e for e in examples if fingerprint(e) not in targets.questions]
    if missing:
        raise UserError(
            f"{teacher}: made of {targets.data}, it says nothing of {len(missing):,} "
            f"of the {len(examples):,} questions of {data}, or has other texts for "
            f"them, the first being {printable(missing[0].id)}; make it anew with "
            f"python -m qanet teach --train {data}"
        )
