"""Examples as arrays: each context tokenised once, each word spelled once.

Features know nothing of a model or a vocabulary. Words are numbered within the data
they come from; `TextEncoder.table` says what a vocabulary makes of each number.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qanet.datasets.squad import Example
from qanet.files import DamagedFile, pack_json, read_arrays, unpack_json, write_cache
from qanet.text.tokenizer import words_of

# Part of the cache key: raise it when the arrays or the tokenizer change.
FORMAT = 4
PADDING_WORD = ""

# Splits a text: its tokens, and where they stand, in code points.
Split = Callable[[str], tuple[list[str], list[tuple[int, int]]]]


@dataclass(frozen=True)
class Features:
    """Tokenised questions and contexts in flat arrays.

    The tokens of context c are `context_words[context_splits[c]:context_splits[c + 1]]`
    and likewise for questions, of which there is one per example.

    Attributes:
        words: the distinct words, `words[0]` being padding.
        context_words: int32 `(context tokens,)`, indices into `words`.
        context_spans: int32 `(context tokens, 2)`, character offsets.
        context_splits: int64 `(contexts + 1,)`.
        question_words: int32 `(question tokens,)`.
        question_splits: int64 `(examples + 1,)`.
        context_of: int32 `(examples,)`, the context of each example.
        starts, ends: int32 `(examples,)`, first and last token of the first gold
            answer that the context holds; -1 where there is none.
        impossible: boolean `(examples,)`, true where the context does not answer.
        snapped: number of gold answers widened to token boundaries.
    """

    words: list[str]
    context_words: np.ndarray
    context_spans: np.ndarray
    context_splits: np.ndarray
    question_words: np.ndarray
    question_splits: np.ndarray
    context_of: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    impossible: np.ndarray
    snapped: int

    def __len__(self) -> int:
        return len(self.context_of)

    @property
    def context_lengths(self) -> np.ndarray:
        """Tokens of each example's context, int64 `(examples,)`."""
        return np.diff(self.context_splits)[self.context_of]

    @property
    def question_lengths(self) -> np.ndarray:
        """Tokens of each example's question, int64 `(examples,)`."""
        return np.diff(self.question_splits)

    def spans_of(self, example: int) -> np.ndarray:
        """Character offsets of an example's context tokens, int32 `(tokens, 2)`."""
        context = self.context_of[example]
        begin, end = self.context_splits[context : context + 2]
        return self.context_spans[begin:end]


def splits_of(sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    """Where flat parts of these sizes begin and the last one ends, int64."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype("int64")


def join_splits(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The splits of flat parts that are put one after the other, int64."""
    return splits_of(np.concatenate([np.diff(splits) for splits in parts]))


def build_features(examples: Sequence[Example], split: Split = words_of) -> Features:
    """Tokenises examples; examples that share a context share its tokens.

    A gold answer that begins or ends inside a token is snapped outward, and counted.

    Args:
        examples: what to tokenise.
        split: splits a text, as the reader's text encoder does.
    """
    words = {PADDING_WORD: 0}
    contexts: dict[str, int] = {}
    context_words, context_spans, context_splits = [], [], [0]
    question_words, question_splits = [], [0]
    context_of, starts, ends = [], [], []
    snapped = 0
    for example in examples:
        context = contexts.setdefault(example.context, len(contexts))
        if context == len(context_spans):
            tokens, spans = split(example.context)
            context_words += _number(tokens, words)
            context_spans.append(np.array(spans, dtype=np.int32).reshape(-1, 2))
            context_splits.append(len(context_words))
        context_of.append(context)
        question_words += _number(split(example.question)[0], words)
        question_splits.append(len(question_words))
        start, end, exact = _answer_tokens(example, context_spans[context])
        starts.append(start)
        ends.append(end)
        snapped += not exact
    return Features(
        words=list(words),
        context_words=np.array(context_words, dtype=np.int32),
        context_spans=np.concatenate([np.zeros((0, 2), np.int32), *context_spans]),
        context_splits=np.array(context_splits, dtype=np.int64),
        question_words=np.array(question_words, dtype=np.int32),
        question_splits=np.array(question_splits, dtype=np.int64),
        context_of=np.array(context_of, dtype=np.int32),
        starts=np.array(starts, dtype=np.int32),
        ends=np.array(ends, dtype=np.int32),
        impossible=np.array([example.impossible for example in examples], dtype=bool),
        snapped=snapped,
    )


def join_features(parts: Sequence[Features]) -> Features:
    """The examples of several features, one after the other, on one list of words."""
    numbers = {PADDING_WORD: 0}
    renumbered = [
        np.array(
            [numbers.setdefault(word, len(numbers)) for word in part.words], "int32"
        )
        for part in parts
    ]

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name) for part in parts])

    def joined_words(name: str) -> np.ndarray:
        pairs = zip(renumbered, parts, strict=True)
        return np.concatenate([new[getattr(part, name)] for new, part in pairs])

    contexts = np.cumsum([0, *(len(part.context_splits) - 1 for part in parts)])
    pairs = zip(contexts.tolist(), parts, strict=False)
    return Features(
        words=list(numbers),
        context_words=joined_words("context_words"),
        context_spans=joined("context_spans"),
        context_splits=join_splits([part.context_splits for part in parts]),
        question_words=joined_words("question_words"),
        question_splits=join_splits([part.question_splits for part in parts]),
        context_of=np.concatenate([first + part.context_of for first, part in pairs]),
        starts=joined("starts"),
        ends=joined("ends"),
        impossible=joined("impossible"),
        snapped=sum(part.snapped for part in parts),
    )


def cached_features(
    examples: Sequence[Example],
    cache: Path,
    split: Split = words_of,
    key: str = "",
) -> Features:
    """Reads the features of these very examples from the cache, or builds them.

    A cache that cannot be written is warned of and done without.

    Args:
        examples: what to tokenise.
        cache: directory of the cache.
        split: splits a text, as the reader's text encoder does.
        key: tells this way of splitting from others.
    """
    path = cache / f"features-{_content_hash(examples, key)}.npz"
    try:
        return _load(path)
    except (OSError, DamagedFile):
        features = build_features(examples, split)
        _save(features, path)
        return features


def _number(tokens: list[str], words: dict[str, int]) -> list[int]:
    """The numbers of tokens; new ones are added."""
    return [words.setdefault(token, len(words)) for token in tokens]


def _answer_tokens(example: Example, bounds: np.ndarray) -> tuple[int, int, bool]:
    """First and last token of the first answer that the context holds.

    Returns:
        `(start, end, exact)`; -1 and -1 without an answer.
    """
    for answer in example.answers:
        if answer.start < 0:
            continue
        begin, stop = answer.start, answer.start + len(answer.text)
        # The tokens that share a character with the answer.
        start = int(np.searchsorted(bounds[:, 1], begin, side="right"))
        end = int(np.searchsorted(bounds[:, 0], stop, side="left")) - 1
        if start <= end:
            exact = bounds[start, 0] == begin and bounds[end, 1] == stop
            return start, end, bool(exact)
    return -1, -1, True


def _content_hash(examples: Sequence[Example], key: str) -> str:
    digest = hashlib.sha256(f"{FORMAT}{key}".encode())
    context = None
    for example in examples:
        if example.context is not context:
            context = example.context
            digest.update(json.dumps(context).encode())
        answers = [(answer.text, answer.start) for answer in example.answers]
        digest.update(json.dumps([example.question, answers]).encode())
    return digest.hexdigest()[:24]


_ARRAYS = (
    "context_words",
    "context_spans",
    "context_splits",
    "question_words",
    "question_splits",
    "context_of",
    "starts",
    "ends",
    "impossible",
)


def to_arrays(features: Features) -> dict[str, np.ndarray]:
    """Features as plain arrays, to be stored."""
    arrays = {name: getattr(features, name) for name in _ARRAYS}
    return arrays | {
        "words": pack_json(features.words),
        "snapped": np.int64(features.snapped),
    }


def from_arrays(arrays: dict[str, np.ndarray]) -> Features:
    """Reverses `to_arrays`.

    Raises:
        KeyError, TypeError, ValueError: these are not the arrays of features.
    """
    arrays = dict(arrays)
    words = unpack_json(arrays.pop("words"))
    snapped = int(arrays.pop("snapped"))
    features = Features(words=words, snapped=snapped, **arrays)
    _check(features)
    return features


def _check(features: Features) -> None:
    """Raises `ValueError` where the arrays do not go together."""
    words, impossible = features.words, features.impossible
    whole = [getattr(features, name) for name in _ARRAYS if name != "impossible"]
    if not (
        isinstance(words, list)
        and words
        and all(type(word) is str for word in words)
        and all(array.dtype.kind == "i" and array.size < 2**31 for array in whole)
        and impossible.dtype == bool
        and _are_splits(features.context_splits, features.context_words, len(words))
        and _are_splits(features.question_splits, features.question_words, len(words))
        # A packed data set leaves the spans of the training set out.
        and features.context_spans.shape in ((0, 2), (len(features.context_words), 2))
        and len(features.question_splits) == impossible.size + 1
        and impossible.ndim == 1
        and features.context_of.shape == impossible.shape
        and _are_below(features.context_of, len(features.context_splits) - 1)
        and features.starts.shape == features.ends.shape == impossible.shape
        and _are_answers(features.starts, features.ends, features.context_lengths)
    ):
        raise ValueError("arrays do not go together")


def _are_splits(splits: np.ndarray, tokens: np.ndarray, words: int) -> bool:
    """Whether tokens, numbers of so many words, are split into texts."""
    return bool(
        tokens.ndim == splits.ndim == 1
        and splits.size
        and splits[0] == 0
        and splits[-1] == len(tokens)
        and (np.diff(splits) >= 0).all()
        and _are_below(tokens, words)
    )


def _are_below(numbers: np.ndarray, limit: int) -> bool:
    return bool(((numbers >= 0) & (numbers < limit)).all())


def _are_answers(starts: np.ndarray, ends: np.ndarray, lengths: np.ndarray) -> bool:
    """Whether these are first and last tokens of answers in contexts, or -1 both."""
    none = (starts == -1) & (ends == -1)
    return bool((none | ((starts >= 0) & (starts <= ends) & (ends < lengths))).all())


def _save(features: Features, path: Path) -> None:
    write_cache(path, lambda file: np.savez(file, **to_arrays(features)))


def _load(path: Path) -> Features:
    arrays = read_arrays(path)
    try:
        return from_arrays(arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFile(f"{path}: damaged: {error}") from error
