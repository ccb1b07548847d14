"""What all translators have in common, and how one is named on the command line."""

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
        specification: `apertium:MODE`, for example `apertium:eng-spa`.

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
    raise UserError(f"translator {specification!r}: unknown kind; there is apertium")
