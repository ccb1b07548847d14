"""Paraphrases of contexts, sentence by sentence, with their answers found again.

Everything here works on one context at a time and without translating, so that a local
run and a pipeline on many machines give the same.
"""

import hashlib
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache

from qanet.augmentation.answers import MATCHERS, Match, find_exact
from qanet.datasets.squad import Example, Span
from qanet.text.sentences import sentence_spans

# Characters of a paraphrase to those of the sentence.
SHORTEST, LONGEST = 0.5, 2.0
# Characters of a context that is hashed with every draw.
LONG = 20_000
COUNTS = (
    "contexts",
    "sentences",
    "sentences_unchanged",
    "sentences_kept_empty",
    "sentences_kept_length",
    "sentences_kept_numbers",
    "sentences_kept_script",
    "questions",
    "answers_exact",
    "answers_close",
    "answers_dropped",
    "answers_none",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """How paraphrases are chosen and answers found.

    Attributes:
        candidates: Translations asked for in either direction (k of the paper, 5).
        seed: Fixes which of them is taken.
        matching: How an answer that is not found word for word is looked for.
        threshold: Lowest score of an answer that is kept.
    """

    candidates: int = 5
    seed: int = 42
    matching: str = "edges"
    threshold: float = 0.75


@dataclass(frozen=True, slots=True)
class Passage:
    """A context with its questions.

    Attributes:
        context: The context.
        examples: Its questions.
        spans: Its sentences' `(start, end)`.
    """

    context: str
    examples: tuple[Example, ...]
    spans: tuple[tuple[int, int], ...]

    @property
    def sentences(self) -> list[str]:
        """The sentences' texts, with single blanks for white space."""
        return [" ".join(self.context[start:end].split()) for start, end in self.spans]


@dataclass(frozen=True, slots=True)
class MovedAnswer:
    """What became of an answer.

    Attributes:
        question: The question.
        before: The sentences that the answer stood in.
        old: The answer and its place in `before`.
        after: Their paraphrases.
        after_start: Where `after` stands in the new context.
        new: The answer and its place in `after`; `None` where it was not found.
        score: Likeness of the best span to the old answer, from 0 to 1.
        exact: Whether it was found word for word.
    """

    question: str
    before: str
    old: Span
    after: str
    after_start: int
    new: Span | None
    score: float
    exact: bool


@dataclass
class Paraphrase:
    """A paraphrased passage.

    Attributes:
        examples: The questions that kept their answer, on the new context.
        counts: How many of each of `COUNTS`.
        distance: Sum over the sentences of their edit distance, in words, each divided
            by the words of the longer of both.
        moved: What became of each answer.
    """

    examples: list[Example] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    distance: float = 0.0
    moved: list[MovedAnswer] = field(default_factory=list)


def passages(examples: Iterable[Example]) -> list[Passage]:
    """The examples by context, in order of first appearance."""
    together: dict[tuple[str, str], list[Example]] = {}
    for example in examples:
        together.setdefault((example.title, example.context), []).append(example)
    return [
        Passage(context, tuple(group), tuple(sentence_spans(context)))
        for (_, context), group in together.items()
    ]


def choose(
    candidates: Sequence[str], context: str, number: int, settings: Settings, way: str
) -> str | None:
    """Takes one of a sentence's translations, each as likely as the others.

    The choice depends on nothing but the arguments, so every run and every machine
    makes the same.

    Args:
        candidates: The translations.
        context: The context that the sentence is from.
        number: The number of the sentence in it.
        settings: Gives the seed.
        way: `forward` or `backward`, which are drawn apart.

    Returns:
        One of them, or `None` where there are none.
    """
    if not candidates:
        return None
    # Seeding by text hashes it with SHA-512, unlike hash() the same everywhere.
    draw = random.Random(f"{settings.seed} {way} {number} {_key(context)}")
    return candidates[draw.randrange(len(candidates))]


@lru_cache(maxsize=8)
def _key(context: str) -> str:
    """What stands for a context in each draw: a digest where it is long."""
    if len(context) <= LONG:
        return context
    return hashlib.sha256(context.encode()).hexdigest()


def rebuild(
    passage: Passage, new_sentences: Sequence[str | None], settings: Settings
) -> Paraphrase:
    """Puts a passage together from new sentences.

    Args:
        passage: The passage.
        new_sentences: The paraphrase of each of its sentences; `None` where there is
            none. A sentence whose paraphrase is not usable stays as it was.
        settings: How answers are found.
    """
    from rapidfuzz.distance import Levenshtein

    result = Paraphrase(counts=Counter(contexts=1, sentences=len(passage.spans)))
    parts, new_spans, length, end = [], [], 0, 0
    for old, new, (old_start, old_end) in zip(
        passage.sentences, new_sentences, passage.spans, strict=True
    ):
        problem = _problem(old, new)
        if problem:
            result.counts[f"sentences_kept_{problem}"] += 1
        result.counts["sentences_unchanged"] += new == old
        text = passage.context[old_start:old_end] if problem else new
        between = passage.context[end:old_start]
        parts += [between, text]
        new_spans.append((length + len(between), length + len(between) + len(text)))
        length, end = new_spans[-1][1], old_end
        result.distance += Levenshtein.normalized_distance(old.split(), text.split())
    parts.append(passage.context[end:])
    context = "".join(parts)
    for example in passage.examples:
        moves = [
            _move(example.question, answer, passage, context, new_spans, settings)
            for answer in example.answers
            if answer.start >= 0
        ]
        kept = [move for move in moves if move.new is not None]
        result.moved += moves
        result.counts["questions"] += 1
        if kept or example.impossible:
            answers = tuple(
                Span(move.new.text, move.after_start + move.new.start) for move in kept
            )
            result.examples.append(replace(example, context=context, answers=answers))
        result.counts[f"answers_{_outcome(example, kept)}"] += 1
    return result


def _outcome(example: Example, kept: Sequence[MovedAnswer]) -> str:
    """What became of a question's answers."""
    if example.impossible:
        return "none"
    if not kept:
        return "dropped"
    return "exact" if any(move.exact for move in kept) else "close"


def _problem(old: str, new: str | None) -> str | None:
    """Why a paraphrase cannot stand for its sentence; `None` where it can."""
    if not new:
        return "empty"
    if not SHORTEST <= len(new) / len(old) <= LONGEST:
        return "length"
    if _numbers(old) - _numbers(new):
        return "numbers"
    if not _scripts(new) <= _scripts(old):
        return "script"
    return None


def _numbers(text: str) -> Counter[str]:
    """The numbers in a text: without what divides thousands, decimals after a point.

    Three digits after a point or a comma are thousands, but not after a lone 0.
    """
    found = re.findall(r"\d+(?:[.,]\d+)*", text)
    whole = (re.sub(r"(?<!\b0)[.,](?=\d{3}(?!\d))", "", number) for number in found)
    return Counter(number.replace(",", ".") for number in whole)


def _scripts(text: str) -> set[str]:
    # Without compatibility forms, such as the micro sign, which is a Greek letter.
    letters = filter(str.isalpha, set(unicodedata.normalize("NFKC", text)))
    # A letter that modifies others is of no script.
    return {_script(c) for c in letters if unicodedata.category(c) != "Lm"}


@cache
def _script(letter: str) -> str:
    """The script that a letter is of, by its name in Unicode: LATIN, CYRILLIC, ..."""
    return unicodedata.name(letter, "UNKNOWN").partition(" ")[0]


def _move(
    question: str,
    answer: Span,
    passage: Passage,
    context: str,
    new_spans: Sequence[tuple[int, int]],
    settings: Settings,
) -> MovedAnswer:
    """Finds an answer again, in the sentences that it stood in."""
    # It may begin with the blank before its sentence.
    leading = len(answer.text) - len(answer.text.lstrip())
    answer = Span(answer.text.strip(), answer.start + leading)
    end = answer.start + len(answer.text)
    touched = [
        i
        for i, (first, last) in enumerate(passage.spans)
        if first < end and answer.start < last
    ]
    old_start, old_end = passage.spans[touched[0]][0], passage.spans[touched[-1]][1]
    new_start, new_end = new_spans[touched[0]][0], new_spans[touched[-1]][1]
    before, after = passage.context[old_start:old_end], context[new_start:new_end]
    old = Span(answer.text, answer.start - old_start)
    position = old.start / len(before)
    if before == after:
        match = Match(old.start, old.start + len(old.text), 1.0)
    else:
        match = find_exact(answer.text, after, position)
    exact = match is not None
    if match is None:
        match = MATCHERS[settings.matching](answer.text, after, position)
    new = None
    if match is not None and match.score >= settings.threshold:
        new = Span(after[match.start : match.end], match.start)
    score = 0.0 if match is None else match.score
    return MovedAnswer(question, before, old, after, new_start, new, score, exact)
