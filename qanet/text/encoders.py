"""Text encoders: how a text is split, and what a model sees of each token."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from qanet.text.contextual import ContextualEncoder
from qanet.text.pieces import WordPieces
from qanet.text.vocabulary import Vocabulary


class TextEncoder(Protocol):
    """What stands between a text and a model.

    Attributes:
        contextual: gives each token further vectors, by its text; `None` where there
            are none.
        unit: what a user is told that tokens are.
        key: tells its way of splitting from others, for caches.
    """

    contextual: ContextualEncoder | None
    unit: str
    key: str

    def __len__(self) -> int:
        """How many tokens it knows."""

    def tokens(self, text: str) -> tuple[list[str], list[tuple[int, int]]]:
        """The tokens of a text, and where they stand, in code points."""

    def count(self, text: str, most: int | None = None) -> int:
        """How many tokens a text has; some number above `most` where there are more."""

    def table(self, tokens: Sequence[str]) -> dict[str, np.ndarray]:
        """Columns `(tokens, ...)` of which the first row is padding's.

        They are numbers, int32, of which padding's are 0; or float32 vectors, where a
        network has made them.
        """


class StoredEncoder(TextEncoder, Protocol):
    """A text encoder that a run directory holds.

    Attributes:
        vectors: frozen vectors that go into the model, float16 `(rows, width)`; `None`
            where there are none.
    """

    vectors: np.ndarray | None

    def describe(self) -> str:
        """What it holds, in words."""

    def save(self, directory: Path) -> None:
        """Writes it into a directory, which is made if need be."""

    def save_words(self, directory: Path) -> None:
        """Writes all but the vectors."""

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Reads what `save` wrote; raises `UserError` where it is damaged."""

    @classmethod
    def load_words(cls, directory: Path) -> Self:
        """Reads what `save_words` wrote; raises `UserError` where it is damaged."""

    def to_fields(self) -> dict[str, Any]:
        """All but the vectors, to be stored as JSON."""

    @classmethod
    def from_fields(
        cls, fields: object, read_vectors: Callable[[], np.ndarray]
    ) -> Self:
        """Reverses `to_fields`; raises `ValueError`."""


# By the names that `qanet.models.registry.Model.text` has.
ENCODERS: dict[str, type[StoredEncoder]] = {"words": Vocabulary, "pieces": WordPieces}
