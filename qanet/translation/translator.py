"""What all translators have in common, and how one is named on the command line."""

import math
from collections.abc import Sequence
from typing import Protocol

from qanet.errors import UserError


class Translator(Protocol):
    """Translates from one language into another.

    Attributes:
        name: Says which translations these are; equal names, equal translations.
        batch_size: How many sentences at a time suit it.
    """

    name: str
    batch_size: int

    def translate(self, sentences: Sequence[str], count: int) -> list[list[str]]:
        """Translates sentences.

        Args:
            sentences: What to translate, each on its own.
            count: The most translations that a sentence gets.

        Returns:
            For each sentence its different translations, the best first: at least one
            and at most `count`, or none where it cannot be translated.

        Raises:
            UserError: The translator does not work.
        """


def open_translator(specification: str) -> Translator:
    """Makes the translator that is specified as `KIND:WHICH`.

    Args:
        specification: `apertium:MODE`, for example `apertium:eng-spa`; `nmt:DIR` with
            a directory that `python -m qanet translate train` made, or
            `nmt-sample:TEMPERATURE:DIR` to draw translations instead of searching
            for the likeliest.

    Raises:
        UserError: There is no such kind, or it cannot be used here.
    """
    kind, separator, which = specification.partition(":")
    if not separator or not which:
        raise UserError(
            f"translator {specification!r}: write it as KIND:WHICH, "
            "for example apertium:eng-spa"
        )
    if kind == "apertium":
        from qanet.translation.apertium import ApertiumTranslator

        return ApertiumTranslator(which)
    if kind == "nmt":
        from qanet.translation.neural import NeuralTranslator

        return NeuralTranslator(which)
    if kind == "nmt-sample":
        from qanet.translation.neural import NeuralTranslator

        return NeuralTranslator(*_sampled(which, specification))
    raise UserError(
        f"translator {specification!r}: unknown kind; there are apertium, nmt and "
        "nmt-sample"
    )


def _sampled(which: str, specification: str) -> tuple[str, float]:
    """Directory and temperature of `TEMPERATURE:DIR`."""
    temperature, _, directory = which.partition(":")
    try:
        value = float(temperature)
    except ValueError:
        value = 0.0
    if not directory or not 0.0 < value < math.inf:
        raise UserError(
            f"translator {specification!r}: write nmt-sample:TEMPERATURE:DIR, for "
            "example nmt-sample:0.8:runs/en-fr"
        )
    return directory, value
