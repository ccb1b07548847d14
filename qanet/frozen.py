"""Frozen language models as a source of contextual vectors (ELMo: Peters et al., 2018,
sections 3.2 and 3.3; BERT as features: Devlin et al., 2019, section 5.3).

Importing this imports no Keras, see `qanet.models.registry`.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qanet.errors import UserError, reading
from qanet.files import digest_of, write_file
from qanet.models.bert import POSITIONS, BERTConfig, encode, piece_sizes
from qanet.models.bert_weights import (
    load_pretrained,
    read_sizes,
    weight_files,
)
from qanet.models.character_ids import character_ids
from qanet.models.elmo_weights import (
    OPTIONS_FILE,
    WEIGHTS_FILE,
    load_bilm,
    read_options,
)
from qanet.settings import configure
from qanet.text.pieces import PIECES_FILE, WordPieces
from qanet.text.vocabulary import plain

# At most in memory together: texts, and their characters (one longer text is read
# alone). Then: tokens read in one batch, padding included.
TEXTS, CHARACTERS, TOKENS = 256, 2**18, 8192
# Lengths are rounded up to a multiple, so that few shapes are compiled.
MULTIPLE = 16


class Part(NamedTuple):
    """A stretch of a text that is read at once.

    Attributes:
        text: the number of its text.
        numbers: what is read, int32 `(tokens, ...)`.
        offset: the token of the text that it begins with.
        first, last: the first token of the text that has its vectors from this part,
            and the one after the last.
    """

    text: int
    numbers: np.ndarray
    offset: int
    first: int
    last: int


class FrozenModel:
    """What frozen language models have in common: a text is read in windows, and a
    token has the vectors of the window in which it is most central.

    Args:
        directory: where the model is.
        files: the files of it.
        layers: how many of its last layers.
        width: of a vector.

    Attributes:
        cache: where the vectors of data sets are kept; `None` keeps none.
    """

    # Tokens that are read at once, and from the start of one window to the next.
    WINDOW: int
    STRIDE: int

    def __init__(
        self,
        directory: Path,
        files: Sequence[Path],
        layers: int,
        width: int,
    ):
        self.directory = directory
        self.files = files
        self.layers = layers
        self.width = width
        self.cache: Path | None = None

    @cached_property
    def key(self) -> str:
        """Tells its vectors from those of others, for caches."""
        return digest_of(self.files, str(self.layers))

    def save(self, directory: Path) -> None:
        """Copies its files; raises `UserError` where they cannot be written."""
        for path in self.files:
            with reading(path), path.open("rb") as source:
                write_file(directory / path.name, partial(shutil.copyfileobj, source))

    def encode(
        self, texts: Sequence[str], spans: Sequence[np.ndarray]
    ) -> Iterator[np.ndarray]:
        """See `ContextualEncoder.encode`."""
        for group in groups_of(list(map(len, texts))):
            yield from self._encode(texts[group], spans[group])

    def _encode(
        self, texts: Sequence[str], spans: Sequence[np.ndarray]
    ) -> Iterator[np.ndarray]:
        """The same for a few texts."""
        raise NotImplementedError

    def _states(self, numbers: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The vectors of the model's own tokens.

        Args:
            numbers: int32 `(tokens, ...)` for each text.

        Returns:
            float16 `(tokens, layers, width)` for each.
        """
        parts = [
            Part(text, of_text[offset : offset + length], offset, first, last)
            for text, of_text in enumerate(numbers)
            for offset, length, first, last in windows_of(
                len(of_text), self.WINDOW, self.STRIDE
            )
        ]
        sizes = [len(of_text) for of_text in numbers]
        return read_parts(parts, sizes, self.predict, (self.layers, self.width))

    @property
    def predict(self) -> Callable[[np.ndarray], np.ndarray]:
        """From numbers `(batch, length, ...)`, 0 at padding, to vectors
        `(batch, length, layers, width)`."""
        raise NotImplementedError


class FrozenBERT(FrozenModel):
    """The hidden states of BERT's last blocks; a word has those of its first piece.

    Args:
        directory: of a public BERT model, see `qanet.models.bert_weights`.
        layers: how many of the last blocks.

    Raises:
        UserError: the directory holds no such model, or one of fewer blocks.
    """

    # Beside [CLS] and [SEP].
    WINDOW = POSITIONS - 2
    STRIDE = WINDOW // 2

    def __init__(self, directory: Path, layers: int):
        values = read_sizes(directory) | {"pretrained": str(directory)}
        self.config = configure(BERTConfig, values, [], str(directory))
        _check_layers(directory, layers, self.config.blocks)
        self.pieces = WordPieces.load(directory)
        names = ("config.json", "bert_config.json", PIECES_FILE)
        files = [path for name in names if (path := directory / name).is_file()]
        files += weight_files(directory)
        super().__init__(directory, files, layers, self.config.width)

    def _encode(
        self, texts: Sequence[str], spans: Sequence[np.ndarray]
    ) -> Iterator[np.ndarray]:
        split = [self.pieces.tokens(text) for text in texts]
        tables = [self.pieces.table(["", *tokens])["pieces"][1:] for tokens, _ in split]
        states = self._states(tables)
        for (_, places), of_text, words in zip(split, states, spans, strict=True):
            yield first_pieces(of_text, np.array(places).reshape(-1, 2), words)

    @cached_property
    def predict(self) -> Callable[[np.ndarray], np.ndarray]:
        """See `FrozenModel.predict`."""
        import keras
        from keras import ops

        from qanet.layers.join_texts import JoinTexts
        from qanet.layers.transformer_block import transformer_blocks

        sizes = piece_sizes(self.pieces)
        text = keras.Input((None,), dtype="int32", name="pieces")
        # A question alone is [CLS] text [SEP], but for the last mark.
        joined = JoinTexts(sizes.cls, sizes.sep)(text, text[:, :0])
        joined = [part[:, :-1] for part in joined]
        model = keras.Model(text, encode(*joined, self.config, sizes))
        load_pretrained(model, self.config)
        blocks = transformer_blocks(model)
        states = [block.output[:, 1:-1] for block in blocks[-self.layers :]]
        return _function(keras.Model(text, ops.stack(states, axis=2)))


class FrozenBiLM(FrozenModel):
    """The layers of ELMo's language model, which reads a text as one sentence.

    Args:
        directory: of an ELMo model, see `qanet.models.elmo_weights`.
        layers: how many of the last layers; the first of all is the words' own vector.

    Raises:
        UserError: the directory holds no such model, or one of fewer layers.
    """

    WINDOW = 400
    STRIDE = 300

    def __init__(self, directory: Path, layers: int):
        config = read_options(directory)
        _check_layers(directory, layers, config.layers + 1)
        files = [directory / OPTIONS_FILE, directory / WEIGHTS_FILE]
        super().__init__(directory, files, layers, 2 * config.projection)

    def _encode(
        self, texts: Sequence[str], spans: Sequence[np.ndarray]
    ) -> Iterator[np.ndarray]:
        words = [
            [text[begin:end] for begin, end in places]
            for text, places in zip(texts, spans, strict=True)
        ]
        yield from self._states(
            [character_ids(list(map(plain, of_text))) for of_text in words]
        )

    @cached_property
    def predict(self) -> Callable[[np.ndarray], np.ndarray]:
        """See `FrozenModel.predict`."""
        import keras

        model = load_bilm(self.directory)
        last = model.output[:, :, -self.layers :]
        return _function(keras.Model(model.input, last))


def _function(model) -> Callable[[np.ndarray], np.ndarray]:
    """What computes a model on one device, whatever a training is shared among."""
    from qanet.models.prediction import any_shape, prediction

    return any_shape(model) or prediction(model)


def open_encoder(directory: Path, layers: int):
    """The language model that a directory holds.

    Args:
        directory: of an ELMo model or of a public BERT model.
        layers: how many of its last layers.

    Returns:
        A `FrozenModel`.

    Raises:
        UserError: the directory holds neither, or a model of fewer layers.
    """
    is_bilm = (directory / OPTIONS_FILE).exists()
    return (FrozenBiLM if is_bilm else FrozenBERT)(directory, layers)


def _check_layers(directory: Path, layers: int, most: int) -> None:
    if layers > most:
        raise UserError(
            f"{directory}: has {most} layers; lower model.contextual_layers={layers}"
        )


def groups_of(lengths: Sequence[int]) -> Iterator[slice]:
    """Neighbouring texts whose vectors are in memory together, by their characters."""
    first, characters = 0, 0
    for i, length in enumerate(lengths):
        is_full = i - first == TEXTS or characters + length > CHARACTERS
        if i > first and is_full:
            yield slice(first, i)
            first, characters = i, 0
        characters += length
    if lengths:
        yield slice(first, len(lengths))


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
            _, _, offset, first, last = parts[i]
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
        `(words, layers, width)`; zero where a word has no piece at its start.
    """
    found = np.zeros((len(words), *states.shape[1:]), dtype=states.dtype)
    if len(places):
        pieces = np.searchsorted(places[:, 1], words[:, 0], side="right")
        pieces = pieces.clip(max=len(places) - 1)
        begin, end = places[pieces].T
        within = (begin <= words[:, 0]) & (words[:, 0] < end)
        found[within] = states[pieces[within]]
    return found
