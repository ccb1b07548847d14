"""Frozen language models as a source of contextual vectors (ELMo: Peters et al., 2018,
section 3.2).

Importing this imports no Keras, see `qanet.models.registry`.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qanet.errors import UserError, reading_text
from qanet.models.bert import POSITIONS, BERTConfig, encode, piece_sizes
from qanet.models.pretrained import (
    CHECKPOINT,
    SAFETENSORS,
    load_pretrained,
    read_sizes,
)
from qanet.text.pieces import PIECES_FILE, WordPieces

# Texts that are in memory at a time, and tokens that are read together.
TEXTS, TOKENS = 256, 8192
# Lengths are rounded up to a multiple, so that few shapes are compiled.
MULTIPLE = 64


class Part(NamedTuple):
    """A stretch of a text that is read at once.

    Attributes:
        text: the number of its text.
        numbers: what is read, int32 `(tokens, ...)`.
        first, last: the tokens, from the text's begin, whose vectors are taken from it.
        offset: the token that it begins with.
    """

    text: int
    numbers: np.ndarray
    first: int
    last: int
    offset: int


class FrozenBERT:
    """The hidden states of BERT's last blocks; a word has those of its first piece.

    A text is read in windows of 510 pieces, each 255 after the one before; a piece's
    vectors are those of the window in which it is most central.

    Args:
        directory: of a public BERT model, see `qanet.models.pretrained`.
        layers: how many of the last blocks.
        cache: where the vectors of data sets are kept; `None` keeps none.

    Raises:
        UserError: the directory holds no such model, or one of fewer blocks.
    """

    WINDOW = POSITIONS - 2
    STRIDE = WINDOW // 2

    def __init__(self, directory: Path, layers: int, cache: Path | None = None):
        self.directory = directory
        self.layers = layers
        self.cache = cache
        self.config = BERTConfig(**read_sizes(directory), pretrained=str(directory))
        self.width = self.config.width
        if layers > self.config.blocks:
            raise UserError(
                f"{directory}: has {self.config.blocks} blocks; lower "
                f"model.contextual_layers={layers}"
            )
        self.pieces = WordPieces.load(directory)

    @cached_property
    def key(self) -> str:
        """Tells its vectors from those of others, for caches."""
        digest = hashlib.sha256(f"bert {self.layers} {self.pieces.key}".encode())
        for path in files_of(self.directory):
            with reading_text(path), path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    def encode(
        self, texts: Sequence[str], spans: Sequence[np.ndarray]
    ) -> Iterator[np.ndarray]:
        """See `ContextualEncoder.encode`."""
        for first in range(0, len(texts), TEXTS):
            group = slice(first, first + TEXTS)
            split = [self.pieces.tokens(text) for text in texts[group]]
            states = self._states([tokens for tokens, _ in split])
            for (_, places), of_text, words in zip(
                split, states, spans[group], strict=True
            ):
                yield first_pieces(of_text, np.array(places).reshape(-1, 2), words)

    def save(self, directory: Path) -> None:
        """Copies its files."""
        directory.mkdir(parents=True, exist_ok=True)
        for path in files_of(self.directory):
            shutil.copyfile(path, directory / path.name)

    def _states(self, texts: Sequence[list[str]]) -> list[np.ndarray]:
        """The vectors of each piece of each text."""
        parts = []
        number_of = self.pieces.number_of
        cls, sep = number_of["[CLS]"], number_of["[SEP]"]
        for text, tokens in enumerate(texts):
            numbers = self.pieces.table(["", *tokens])["pieces"][1:]
            for offset, length, first, last in windows_of(
                len(tokens), self.WINDOW, self.STRIDE
            ):
                some = numbers[offset : offset + length]
                parts.append(
                    Part(text, np.array([cls, *some, sep]), first, last, offset - 1)
                )
        sizes = [len(tokens) for tokens in texts]
        return read_parts(parts, sizes, self._predict, (self.layers, self.width))

    @cached_property
    def _predict(self) -> Callable[[np.ndarray], np.ndarray]:
        import keras
        from keras import ops

        pieces = keras.Input((None,), dtype="int32", name="pieces")
        real = ops.not_equal(pieces, 0)
        positions = ops.maximum(ops.cumsum(ops.cast(real, "int32"), axis=1) - 1, 0)
        sizes = piece_sizes(self.pieces, None)
        top = encode(
            pieces, positions, ops.zeros_like(pieces), real, self.config, sizes
        )
        model = keras.Model(pieces, top)
        load_pretrained(model, self.config)
        blocks = [layer for layer in model.layers if layer.name.startswith("block_")]
        states = [block.output for block in blocks[-self.layers :]]
        return keras.Model(pieces, ops.stack(states, axis=2)).predict_on_batch


def open_encoder(directory: Path, layers: int, cache: Path | None = None) -> FrozenBERT:
    """The language model that a directory holds.

    Raises:
        UserError: it holds none.
    """
    return FrozenBERT(directory, layers, cache)


def windows_of(
    length: int, window: int, stride: int
) -> Iterator[tuple[int, int, int, int]]:
    """Windows that cover a text, and which tokens each of them tells.

    Returns:
        For each window its first token and its length, and the first token and the
        one after the last that it tells: those that are more central in it than in
        any other.
    """
    offset, told = 0, 0
    while told < length:
        end = min(offset + window, length)
        is_last = end == length
        last = length if is_last else offset + (window + stride) // 2
        yield offset, end - offset, told, last
        offset, told = offset + stride, last


def read_parts(
    parts: Sequence[Part],
    sizes: Sequence[int],
    predict: Callable[[np.ndarray], np.ndarray],
    shape: tuple[int, int],
) -> list[np.ndarray]:
    """Reads parts of about equal lengths together.

    Args:
        parts: what to read.
        sizes: tokens of each text.
        predict: from padded numbers `(batch, length, ...)` to vectors
            `(batch, length, layers, width)`.
        shape: layers and width.

    Returns:
        float16 `(tokens, layers, width)` for each text.
    """
    found = [np.zeros((size, *shape), dtype=np.float16) for size in sizes]
    order = sorted(range(len(parts)), key=lambda i: len(parts[i].numbers))
    while order:
        # The longest first: what is left fits.
        length = -(-len(parts[order[-1]].numbers) // MULTIPLE) * MULTIPLE
        most = max(1, TOKENS // length)
        chosen, order = order[-most:], order[:-most]
        # The next power of two, so that few shapes are compiled.
        rows = min(1 << (len(chosen) - 1).bit_length(), most)
        numbers = np.zeros((rows, length, *parts[0].numbers.shape[1:]), dtype=np.int32)
        for row, i in enumerate(chosen):
            numbers[row, : len(parts[i].numbers)] = parts[i].numbers
        vectors = predict(numbers)
        for row, i in enumerate(chosen):
            _, _, first, last, offset = parts[i]
            found[parts[i].text][first:last] = vectors[
                row, first - offset : last - offset
            ]
    return found


def first_pieces(
    states: np.ndarray, places: np.ndarray, words: np.ndarray
) -> np.ndarray:
    """The vectors of words: those of the piece with a word's first character.

    Args:
        states: `(pieces, layers, width)`.
        places: int `(pieces, 2)`, character offsets of the pieces.
        words: int `(words, 2)`, those of the words.

    Returns:
        `(words, layers, width)`; zero where a word has no piece at its begin.
    """
    found = np.zeros((len(words), *states.shape[1:]), dtype=states.dtype)
    if len(places):
        pieces = np.searchsorted(places[:, 1], words[:, 0], side="right")
        pieces = pieces.clip(max=len(places) - 1)
        begin, end = places[pieces].T
        within = (begin <= words[:, 0]) & (words[:, 0] < end)
        found[within] = states[pieces[within]]
    return found


def files_of(directory: Path) -> list[Path]:
    """The files of a model."""
    names = ("config.json", "bert_config.json", PIECES_FILE, SAFETENSORS)
    named = [path for path in (directory / name for name in names) if path.is_file()]
    return named + sorted(directory.glob(f"{CHECKPOINT}.*"))
