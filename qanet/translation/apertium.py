"""Apertium (Forcada et al., 2011): rule-based translation by an installed program."""

import os
import shutil
import signal
import subprocess
import unicodedata
from collections.abc import Sequence

from qanet.errors import UserError

PROGRAM = "apertium"
TIMEOUT_SECONDS = 600
# Apertium takes an empty line for the end of a sentence, so that words of two never
# mix. Its tagger goes on from one to the next: of English sentences, 2 in 100 are
# translated otherwise after others (docs/augmentation.md).
SEPARATOR = "\n\n"
# Zero-width non-joiner and joiner.
JOINERS = "\u200c\u200d"
ZERO_WIDTH_SPACE = "\u200b"


class ApertiumTranslator:
    """Translates with one of Apertium's modes; it knows one translation a sentence.

    Args:
        mode: A language pair in one direction, such as `eng-spa`.

    Raises:
        UserError: Apertium or this mode is not installed.
    """

    # A process takes 0.15 s to start and then translates 1,000 sentences a second.
    batch_size = 1000

    def __init__(self, mode: str):
        if shutil.which(PROGRAM) is None:
            raise UserError(
                f"apertium:{mode}: Apertium is not installed; on Debian and Ubuntu: "
                "apt-get install apertium apertium-eng-spa"
            )
        modes = _run("-l", text="").split()
        if mode not in modes:
            raise UserError(
                f"apertium:{mode}: this language pair is not installed; there is "
                f"{', '.join(modes) or 'none'}; see apt-cache search ^apertium-"
            )
        self.mode = mode
        self.name = f"apertium:{mode}"

    def translate(self, sentences: Sequence[str], count: int) -> list[list[str]]:
        """See `Translator.translate`."""
        lines = [one_line(sentence) for sentence in sentences]
        translations = iter(self._translate([line for line in lines if line]))
        found = [next(translations) if line else "" for line in lines]
        return [[translation] if translation else [] for translation in found]

    def _translate(self, lines: list[str]) -> list[str]:
        if not lines:
            return []
        # -u: no asterisk before words that it does not know.
        output = _run("-u", self.mode, text=SEPARATOR.join(lines) + "\n")
        parts = [one_line(part) for part in output.strip("\n").split(SEPARATOR)]
        if len(parts) == len(lines):
            return parts
        if len(lines) == 1:
            return [one_line(output)]
        # A line was lost or torn: find it.
        middle = len(lines) // 2
        return self._translate(lines[:middle]) + self._translate(lines[middle:])


def one_line(text: str) -> str:
    """The text with one blank wherever white space or something unprintable stands.

    Marks of format, such as soft hyphens, are left out, but for those that part words
    and those that join letters or keep them apart, which are a part of a word.
    """
    return " ".join("".join(map(_on_a_line, text)).split())


def _on_a_line(character: str) -> str:
    if character.isprintable() or character in JOINERS:
        return character
    is_format = unicodedata.category(character) == "Cf"
    return "" if is_format and character != ZERO_WIDTH_SPACE else " "


def _run(*arguments: str, text: str) -> str:
    process = subprocess.Popen(
        [PROGRAM, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(text.encode(), TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        raise UserError(
            f"apertium: gave no answer in {TIMEOUT_SECONDS} seconds; "
            "check that it works: echo Hello | apertium eng-spa"
        ) from None
    finally:
        # It is a script that starts a pipeline, all of which is to end with it.
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode:
        (reason, *_) = errors.decode(errors="replace").splitlines() or ["?"]
        raise UserError(
            f"apertium: ended with code {process.returncode} ({reason.strip()}); "
            "check that it works: echo Hello | apertium eng-spa"
        )
    return output.decode(errors="replace")
