"""Word pieces, the tokens of BERT (Devlin et al., 2019; Wu et al., 2016, section 4.1).

A text is cleaned, in lower case and without accents where the vocabulary has no upper
case, and split at spaces and punctuation; each word is then the longest piece that the
vocabulary has, and the longest ones of what is left, which begin with "##". A word that
cannot be put together is one unknown piece. The library `tokenizers` does it and tells
where in the original text each piece stands.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from qanet.errors import UserError, needing, reading
from qanet.files import write_text
from qanet.utf8 import is_encodable

PIECES_FILE = "vocab.txt"

PADDING, UNKNOWN, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL = (PADDING, UNKNOWN, CLS, SEP, MASK)

# Characters, at most, that have pieces of their own in a vocabulary that is made.
ALPHABET = 1000

# Pieces are counted in parts of a text, cut at white space where there is any.
PARTS = re.compile(r"(?s:(?P<whole>.{1,4096}(?=[ \t\n\r]|\Z))|.{1,4096})")

# A longer word is one unknown piece, so no word has more pieces.
LONGEST_WORD = 100

# Half surrogate pairs, which are no text to the library; they are cleaned away.
SURROGATES = re.compile("[\ud800-\udfff]")
REPLACEMENT = "\ufffd"


class WordPieces:
    """A vocabulary of word pieces; a text encoder, see `qanet.text.encoders`.

    Args:
        pieces: the piece of each number; the first one is padding.

    Raises:
        ValueError: a piece is there twice, or one of `SPECIAL` is missing.
    """

    # What a model makes of a piece is trained with it.
    vectors = None
    contextual = None
    unit = "word pieces"

    def __init__(self, pieces: Sequence[str]):
        self.pieces = list(pieces)
        self.number_of = {piece: number for number, piece in enumerate(self.pieces)}
        if len(self.number_of) != len(self.pieces):
            raise ValueError("pieces must differ from one another")
        for piece in SPECIAL:
            if piece not in self.number_of:
                raise ValueError(f"it has no piece {piece}")
        if self.number_of[PADDING]:
            raise ValueError(f"its first piece must be {PADDING}")

    @classmethod
    def train(cls, texts: Iterable[str], size: int) -> Self:
        """The vocabulary of at most so many pieces, in lower case, for some texts.

        The same texts give the same pieces.

        Raises:
            UserError: `tokenizers` is not installed.
        """
        tokenizers = _library()
        tokenizer = _tokenizer(tokenizers.models.WordPiece(unk_token=UNKNOWN), True)
        texts = [_clean(text) for text in texts]
        characters = Counter(
            character
            for text in texts
            for character in tokenizer.normalizer.normalize_str(text)
            if not character.isspace()
        )
        # Each stands at the start of a word, and within.
        room = min(ALPHABET, max(0, size - len(SPECIAL)) // 2)
        alphabet = sorted(characters, key=lambda c: (-characters[c], c))[:room]
        trainer = tokenizers.trainers.WordPieceTrainer(
            vocab_size=size,
            # In an order of ours: the library's own changes from call to call, and with
            # it which of equally common pieces come first.
            special_tokens=[*SPECIAL, *alphabet, *(f"##{c}" for c in alphabet)],
            limit_alphabet=0,
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        numbers = tokenizer.get_vocab()
        return cls(sorted(numbers, key=numbers.get))

    def __len__(self) -> int:
        """How many pieces there are."""
        return len(self.pieces)

    @cached_property
    def key(self) -> str:
        """Tells its way of splitting a text from others, for caches."""
        return hashlib.sha256("\n".join(self.pieces).encode()).hexdigest()

    @cached_property
    def is_cased(self) -> bool:
        """Whether upper and lower case are told apart: a piece has upper case."""
        return any(
            piece != piece.lower() for piece in self.pieces if not _is_special(piece)
        )

    def tokens(self, text: str) -> tuple[list[str], list[tuple[int, int]]]:
        """The pieces of a text, and where they stand, in code points.

        Accents that follow their letter, which the library leaves out, are with it.
        """
        encoding = self._encode(text)
        starts = [start for start, _ in encoding.offsets]
        spans = []
        following = [*starts, len(text)][1:]
        for (start, end), limit in zip(encoding.offsets, following, strict=True):
            while end < limit and unicodedata.category(text[end]) == "Mn":
                end += 1
            spans.append((start, end))
        return encoding.tokens, spans

    def count(self, text: str, most: int | None = None) -> int:
        """How many pieces a text has; some number above `most` where there are more.

        A text without white space for thousands of characters is counted in parts that
        may end inside a word. Then it may be counted higher than it is split, but
        never lower.
        """
        total = margin = 0
        for part in PARTS.finditer(text):
            total += len(self._encode(part[0]).ids)
            if part["whole"] is None:
                margin += LONGEST_WORD
            if most is not None and total and total + margin > most:
                break
        # A blank text stays one.
        return total and total + margin

    def table(self, tokens: Sequence[str]) -> dict[str, np.ndarray]:
        """What a model sees of a list of tokens whose first entry is padding.

        Returns:
            One column, `pieces`, int32 `(tokens,)`, their numbers.
        """
        unknown = self.number_of[UNKNOWN]
        numbers = [self.number_of.get(token, unknown) for token in tokens]
        numbers[0] = 0
        return {"pieces": np.array(numbers, dtype=np.int32)}

    def describe(self) -> str:
        """What it holds, in words."""
        return f"{len(self.pieces):,} word pieces"

    def save(self, directory: Path) -> None:
        """Writes the vocabulary into a directory, which is made if need be."""
        self.save_words(directory)

    def save_words(self, directory: Path) -> None:
        """Writes the pieces, one a line, as public BERT models come."""
        write_text(directory / PIECES_FILE, "\n".join(self.pieces) + "\n")

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Reads what `save` wrote, or what comes with a public BERT model.

        Raises:
            UserError: the file is missing or malformed.
        """
        path = directory / PIECES_FILE
        try:
            with reading(path):
                text = path.read_bytes().decode("utf-8")
            # A piece may be white space, such as U+2028 of a public model.
            lines = text.rstrip("\r\n").split("\n")
            return cls([line.removesuffix("\r") for line in lines])
        except ValueError as error:
            raise UserError(f"{path}: not a vocabulary: {error}") from None

    @classmethod
    def load_words(cls, directory: Path) -> Self:
        """Reads what `save_words` wrote; raises as `load` does."""
        return cls.load(directory)

    def to_fields(self) -> dict[str, Any]:
        """The pieces, to be stored as JSON."""
        return {"pieces": self.pieces}

    @classmethod
    def from_fields(cls, fields: object, read_vectors: Callable) -> Self:
        """Reverses `to_fields`; there are no vectors to be read.

        Raises:
            ValueError: these are no such fields.
        """
        pieces = fields.get("pieces") if isinstance(fields, dict) else None
        if not isinstance(pieces, list) or not all(type(p) is str for p in pieces):
            raise ValueError("it must hold pieces")
        if not all(map(is_encodable, pieces)):
            raise ValueError("a piece holds half a surrogate pair")
        return cls(pieces)

    def _encode(self, text: str):
        return self._tokenizer.encode(_clean(text), add_special_tokens=False)

    @cached_property
    def _tokenizer(self):
        tokenizers = _library()
        model = tokenizers.models.WordPiece(
            self.number_of, unk_token=UNKNOWN, max_input_chars_per_word=LONGEST_WORD
        )
        return _tokenizer(model, not self.is_cased)


def _is_special(piece: str) -> bool:
    """Whether it is a mark: [CLS] and, of some public models, <S>."""
    return f"{piece[:1]}{piece[-1:]}" in ("[]", "<>")


def _clean(text: str) -> str:
    return SURROGATES.sub(REPLACEMENT, text)


def _library():
    with needing("word pieces need the library tokenizers", "tokenizers"):
        import tokenizers
    return tokenizers


def _tokenizer(model, lowercase: bool):
    """BERT's rules around a model of pieces."""
    tokenizers = _library()
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return tokenizer
