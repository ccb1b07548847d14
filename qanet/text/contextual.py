"""Contextual vectors: what a frozen language model makes of each token in its text."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np


class ContextualEncoder(Protocol):
    """A frozen language model.

    Attributes:
        layers, width: of the vectors of a token: one a layer, of this width.
        key: tells its vectors from those of others, for caches.
        cache: where the vectors of data sets are kept; `None` keeps none.
    """

    layers: int
    width: int
    key: str
    cache: Path | None

    def encode(
        self, texts: Sequence[str], spans: Sequence[np.ndarray]
    ) -> Iterator[np.ndarray]:
        """The vectors of the tokens of each text.

        Args:
            texts: the texts.
            spans: int `(tokens, 2)` for each, character offsets of its tokens.

        Returns:
            float16 `(tokens, layers, width)` for each, in order.
        """

    def save(self, directory: Path) -> None:
        """Writes all of it into a directory, from which it can be opened again."""
