"""Paraphrases of a data set, on this machine."""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from qanet.augmentation.answers import require_matchers
from qanet.augmentation.paraphrase import (
    COUNTS,
    MovedAnswer,
    Paraphrase,
    Passage,
    Settings,
    choose,
    rebuild,
)
from qanet.console import progress_bar
from qanet.datasets.squad import Example
from qanet.translation.translator import Translator


@dataclass
class Augmented:
    """A paraphrased data set.

    Attributes:
        examples: The questions that kept their answer, each with the id of its
            original.
        counts: How many of each of `COUNTS`.
        edit_distance: Mean over the sentences of the edit distance in words, divided by
            the words of the longer of both.
        sentences_per_second: Sentences that were translated there and back.
        moved: What became of each answer.
        translators: The names of those there and back.
    """

    examples: list[Example]
    counts: dict[str, int]
    edit_distance: float
    sentences_per_second: float
    moved: list[MovedAnswer]
    translators: tuple[str, str]

    @property
    def exact_share(self) -> float:
        """Share of the questions with an answer where it was found word for word."""
        answered = self.counts["questions"] - self.counts["answers_none"]
        return self.counts["answers_exact"] / max(answered, 1)

    @property
    def kept_share(self) -> float:
        """Share of the questions that were kept."""
        return len(self.examples) / self.counts["questions"]


def augment(
    passages: Sequence[Passage],
    forward: Translator,
    backward: Translator,
    settings: Settings,
    progress: bool = False,
) -> Augmented:
    """Translates contexts into another language and back, and finds the answers again.

    For each sentence one of its translations is drawn, and one of that one's
    translations back: a draw from all pairs, as in the paper, of which the others need
    not be computed.

    Args:
        passages: The contexts and their questions, which stay as they are.
        forward: Translates into the other language.
        backward: Translates back.
        settings: How translations are chosen and answers found.
        progress: Show progress bars.

    Raises:
        UserError: A library is missing, or a translator does not work.
    """
    require_matchers()
    begin = time.monotonic()
    there = _translate(
        forward,
        [sentence for passage in passages for sentence in passage.sentences],
        settings.candidates,
        "translating" if progress else None,
    )
    pivots = [
        [
            choose(there[sentence], passage.context, i, settings, "forward")
            for i, sentence in enumerate(passage.sentences)
        ]
        for passage in passages
    ]
    back = _translate(
        backward,
        [pivot for row in pivots for pivot in row if pivot is not None],
        settings.candidates,
        "translating back" if progress else None,
    )
    seconds = time.monotonic() - begin
    rows = progress_bar(
        iterable=zip(passages, pivots, strict=True),
        desc="finding answers",
        total=len(passages),
        unit="context",
        disable=not progress,
    )
    paraphrases = (
        rebuild(
            passage,
            [
                choose(back.get(pivot, ()), passage.context, i, settings, "backward")
                for i, pivot in enumerate(row)
            ],
            settings,
        )
        for passage, row in rows
    )
    return gather(paraphrases, seconds, (forward.name, backward.name))


def gather(
    paraphrases: Iterable[Paraphrase], seconds: float, translators: tuple[str, str]
) -> Augmented:
    """Joins paraphrased passages to a data set.

    Args:
        paraphrases: In the order that the data set is to have.
        seconds: What their translation took.
        translators: The names of those there and back.
    """
    result = Augmented([], dict.fromkeys(COUNTS, 0), 0.0, 0.0, [], translators)
    distances = []
    for paraphrase in paraphrases:
        result.examples += paraphrase.examples
        result.moved += paraphrase.moved
        distances.append(paraphrase.distance)
        for name, count in paraphrase.counts.items():
            result.counts[name] += count
    sentences = max(result.counts["sentences"], 1)
    # Exact but for one rounding, so no other way to add them gives another number.
    result.edit_distance = math.fsum(distances) / sentences
    result.sentences_per_second = sentences / max(seconds, 1e-9)
    return result


def _translate(
    translator: Translator, sentences: Sequence[str], count: int, progress: str | None
) -> dict[str, list[str]]:
    """The translations of each different sentence."""
    different = list(dict.fromkeys(sentences))
    found = {}
    with progress_bar(
        total=len(different), desc=progress, unit="sentence", disable=progress is None
    ) as bar:
        for first in range(0, len(different), translator.batch_size):
            part = different[first : first + translator.batch_size]
            found |= zip(part, translator.translate(part, count), strict=True)
            bar.update(len(part))
    return found
