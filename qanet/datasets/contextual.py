"""Contextual vectors of a data set, encoded once and kept on disk."""

import hashlib
import math
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np

from qanet.console import progress_bar
from qanet.datasets.features import Features, Split
from qanet.datasets.squad import Example
from qanet.errors import UserError
from qanet.files import DamagedFile, map_array, remove_parts, write_cache
from qanet.text.contextual import ContextualEncoder

# Part of the cache key: raise it when an encoder gives other vectors of the same text.
FORMAT = 2

# Seconds after which an unfinished file that nobody writes is one of a killed process.
LEFT_AFTER = 3600


@dataclass(frozen=True)
class ContextualVectors:
    """The vectors of the tokens of `Features`, in their order.

    Attributes:
        context: float16 `(context tokens, layers, width)`.
        question: float16 `(question tokens, layers, width)`.
    """

    context: np.ndarray
    question: np.ndarray


def contextual_vectors(
    encoder: ContextualEncoder,
    examples: Sequence[Example],
    features: Features,
    split: Split,
) -> ContextualVectors:
    """Reads the vectors of these very texts from the encoder's cache, or encodes them.

    A cache that cannot be written is warned of and done without.

    Args:
        encoder: the language model.
        examples: what `features` was built from.
        features: their tokens.
        split: how they were split.

    Raises:
        UserError: the cache's disk has no room for them.
    """
    contexts = [""] * (len(features.context_splits) - 1)
    for example, context in zip(examples, features.context_of, strict=True):
        contexts[context] = example.context
    bounds = zip(features.context_splits[:-1], features.context_splits[1:], strict=True)
    spans = [features.context_spans[begin:end] for begin, end in bounds]
    questions = [example.question for example in examples]
    asked = [np.array(split(text)[1]).reshape(-1, 2) for text in questions]
    return ContextualVectors(
        _encoded(encoder, contexts, spans, "contexts"),
        _encoded(encoder, questions, asked, "questions"),
    )


def _encoded(
    encoder: ContextualEncoder,
    texts: Sequence[str],
    spans: Sequence[np.ndarray],
    name: str,
) -> np.ndarray:
    """The vectors of all texts, one after the other."""
    shape = (sum(map(len, spans)), encoder.layers, encoder.width)
    if encoder.cache is None:
        return _in_memory(shape, encoder.encode(texts, spans))
    path = encoder.cache / f"contextual-{_content_hash(encoder, texts, spans)}.npy"
    try:
        return _open(path, shape)
    except (OSError, DamagedFile):
        pass
    # Other processes may be writing there; then they write all the time.
    remove_parts(encoder.cache, LEFT_AFTER)
    _check_room(encoder.cache, 2 * math.prod(shape))
    vectors = iter(
        progress_bar(
            iterable=encoder.encode(texts, spans),
            total=len(texts),
            desc=f"encoding {name}",
            unit="text",
            leave=False,
        )
    )
    # What is wrong with the encoder is told here, and is no fault of the cache.
    vectors = chain([next(vectors)], vectors)
    if write_cache(path, lambda file: _write(file, shape, vectors)):
        return _open(path, shape)
    return _in_memory(shape, encoder.encode(texts, spans))


def _check_room(directory: Path, needed: int) -> None:
    """Raises `UserError` where a disk has no room for some bytes."""
    place = next(p for p in (directory, *directory.parents) if p.exists())
    free = shutil.disk_usage(place).free
    if free < needed:
        raise UserError(
            f"{directory}: has {free / 1e9:.1f} GB free, and the contextual vectors "
            f"take {needed / 1e9:.1f} GB; make room, or set XDG_CACHE_HOME to another "
            "disk"
        )


def _open(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """The vectors of a file, which stay on disk until they are read.

    Raises:
        OSError: there is no such file.
        DamagedFile: it is damaged, or another.
    """
    if not shape[0]:
        return np.zeros(shape, dtype=np.float16)
    table = map_array(path)
    if table.shape != shape or table.dtype != np.float16:
        raise DamagedFile(f"{path}: another array")
    return table


def _write(
    file: IO[bytes], shape: tuple[int, ...], vectors: Iterable[np.ndarray]
) -> None:
    """Writes an `.npy` file piece by piece."""
    header = {"descr": "<f2", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    for of_text in vectors:
        file.write(of_text.astype("<f2").tobytes())


def _in_memory(shape: tuple[int, ...], vectors: Iterator[np.ndarray]) -> np.ndarray:
    table = np.zeros(shape, dtype=np.float16)
    begin = 0
    for of_text in vectors:
        table[begin : begin + len(of_text)] = of_text
        begin += len(of_text)
    return table


def _content_hash(
    encoder: ContextualEncoder, texts: Sequence[str], spans: Sequence[np.ndarray]
) -> str:
    digest = hashlib.sha256(f"{FORMAT}{encoder.key}".encode())
    for text, places in zip(texts, spans, strict=True):
        digest.update(f"{len(text)}\0{text}".encode("utf-8", "surrogatepass"))
        digest.update(np.asarray(places, np.int32).tobytes())
    return digest.hexdigest()[:24]
