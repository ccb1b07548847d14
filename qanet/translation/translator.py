"""What all translators have in common, and how one is named on the command line."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from qanet.backend import load_keras
from qanet.errors import UserError

# Of the translators that compute on this machine.
BEAMS = 5
# Sub-words of a batch of sources, padding included.
BATCH_TOKENS = 1024
# Sentences: enough for full batches of each length, and soon stored.
BATCH_SIZE = 512


class Translator(Protocol):
    """Translates from one language into another.

    Attributes:
        name: Says which translations these are; those of equal names are kept for each
            other.
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
        specification: One of
            `apertium:MODE`, for example `apertium:eng-spa`;
            `nmt:DIR` with a directory that `python -m qanet translate train` made;
            `nmt-sample:TEMPERATURE:DIR`, the same, its translations drawn and not
            searched for;
            `ctranslate2:DIR` for a converted model of two languages;
            `ctranslate2:DIR:SOURCE:TARGET` for one of many.

    Raises:
        UserError: There is no such kind, or it cannot be used here.
    """
    kind, _, which = specification.partition(":")
    if kind not in _KINDS:
        raise UserError(
            f"translator {specification!r}: unknown kind; write it as KIND:WHICH, "
            f"where KIND is one of {', '.join(_KINDS)}, for example apertium:eng-spa"
        )
    try:
        return _KINDS[kind](which)
    except _Miswritten as error:
        raise UserError(f"translator {specification!r}: write it as {error}") from None


class _Miswritten(Exception):
    """What stands after the kind is not what it should be; says how to write it."""


def _apertium(mode: str) -> Translator:
    from qanet.translation.apertium import ApertiumTranslator

    if not mode:
        raise _Miswritten("apertium:MODE, for example apertium:eng-spa")
    return ApertiumTranslator(mode)


def _nmt(directory: str) -> Translator:
    if not directory:
        raise _Miswritten("nmt:DIR, for example nmt:runs/en-fr")
    return _neural(directory)


def _nmt_sample(which: str) -> Translator:
    temperature, _, directory = which.partition(":")
    try:
        value = float(temperature)
    except ValueError:
        value = 0.0
    if not directory or not 0.0 < value < math.inf:
        raise _Miswritten(
            "nmt-sample:TEMPERATURE:DIR, for example nmt-sample:0.8:runs/en-fr"
        )
    return _neural(directory, value)


def _neural(directory: str, temperature: float | None = None) -> Translator:
    from qanet.translation.run import TranslationRun

    TranslationRun(directory).load_config()
    load_keras()

    from qanet.translation.neural import NeuralTranslator

    return NeuralTranslator(directory, temperature)


def _ctranslate2(which: str) -> Translator:
    from qanet.translation.ctranslate import CTranslateTranslator

    directory, *languages = which.rsplit(":", 2)
    if len(languages) == 1 or not all([directory, *languages]):
        raise _Miswritten("ctranslate2:DIR or ctranslate2:DIR:SOURCE:TARGET")
    return CTranslateTranslator(Path(directory), tuple(languages) or None)


_KINDS: dict[str, Callable[[str], Translator]] = {
    "apertium": _apertium,
    "nmt": _nmt,
    "nmt-sample": _nmt_sample,
    "ctranslate2": _ctranslate2,
}
