"""A model's inputs, from the columns that a text encoder makes of each token."""

from collections.abc import Mapping

import keras
from keras import ops

TEXTS = ("context", "question")
# The column of contextual vectors; all others hold numbers of tokens and characters.
CONTEXTUAL = "contextual"


def reading_inputs(
    columns: Mapping[str, tuple[int, ...]],
) -> dict[str, keras.KerasTensor]:
    """The symbolic inputs of a reading model.

    Args:
        columns: by name, the shape that a column has at each token: `()` for a number.

    Returns:
        For both texts and each column `{text}_{column}`, int32 `(batch, length, ...)`;
        contextual vectors are float16.
    """
    return {
        f"{text}_{column}": keras.Input(
            (None, *shape),
            dtype="float16" if column == CONTEXTUAL else "int32",
            name=f"{text}_{column}",
        )
        for text in TEXTS
        for column, shape in columns.items()
    }


def mask_of(column: keras.KerasTensor) -> keras.KerasTensor:
    """Where tokens are real, boolean `(batch, length)`, from a column of numbers."""
    return ops.not_equal(column, 0)
