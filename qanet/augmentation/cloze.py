"""Cloze questions: a sentence with a gap, whose word stands in the context.

Here they are made of the passages of any SQuAD file. Those of
`qanet.augmentation.cloze_files` become examples of the same form: the answer is one
token, marked where it stands first.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from qanet.augmentation.numbers import splits_number
from qanet.console import log, printable
from qanet.datasets.squad import Example, Span
from qanet.errors import UserError
from qanet.evaluation.metrics import normalize_answer
from qanet.text.sentences import sentence_spans
from qanet.text.tokenizer import token_spans, tokenize

# The gap, one token; as in the Children's Book Test.
GAP = "XXXXX"

# Characters of a passage; a longer one is left out. Each sentence is asked for with the
# rest as its context, so that time and output grow with the square.
LONGEST = 50_000


@dataclass(frozen=True)
class Cloze:
    """A cloze question.

    Attributes:
        example: context, question and answer.
        candidates: the words of the context that may fill the gap.
    """

    example: Example
    candidates: tuple[str, ...]


def most_frequent_share(questions: Iterable[Cloze]) -> float:
    """Share of the questions that the commonest candidate in the context answers.

    Of several as common it is the one that stands first.
    """
    right = []
    for question in questions:
        words = [word for word, _, _ in _whole_words(question.example.context)]
        candidates = set(question.candidates)
        counts = Counter(word for word in words if word in candidates)
        # Counter keeps the order of first appearance, and `max` takes the first.
        most = max(counts, key=lambda word: counts[word], default=None)
        right.append(most == question.example.answers[0].text)
    return float(np.mean(right))


def make_cloze(examples: Iterable[Example], seed: int) -> list[Cloze]:
    """Makes cloze questions of passages.

    The question is a sentence of the passage; the context is the rest of it. The gap
    takes the place of a name or a number that stands in both: digits that are a whole
    number, or a word with a capital letter that does not begin its sentence and that
    the passage never writes in lower case ("The", in a title, is none). Each sentence
    with such a word gives one question.

    Args:
        examples: those of a data set; only their contexts and titles are looked at.
        seed: fixes which word is left out where several could be.

    Raises:
        UserError: the library that splits sentences is not installed, or no passage
            has such a word.
    """
    rng = np.random.default_rng(seed)
    titles = {example.context: example.title for example in examples}
    questions = []
    for number, (context, title) in enumerate(titles.items()):
        if len(context) > LONGEST:
            log.warning(
                f"{printable(title) or 'a passage'}: left out, {len(context):,} "
                f"characters; split it into passages of at most {LONGEST:,}"
            )
            continue
        questions += _questions_of(context, title, f"cloze-{number}", rng)
    if not questions:
        raise UserError(
            "no passage has a name or a number that stands in two of its sentences; "
            "give a file with longer passages"
        )
    return questions


def _questions_of(
    context: str, title: str, name: str, rng: np.random.Generator
) -> Iterator[Cloze]:
    """The questions of one passage; the ids are `name` and the sentence's number."""
    sentences = sentence_spans(context)
    candidates = _names(context, sentences)
    for number, (start, end) in enumerate(sentences):
        sentence, rest = context[start:end], _without(context, start, end)
        places = first_places(rest)
        elsewhere = places.keys() & candidates
        here = {word for word, _, _ in _whole_words(sentence)}
        # Sorted, or the draw would depend on the order of a set.
        fitting = sorted(elsewhere & here)
        if not fitting:
            continue
        word = fitting[rng.integers(len(fitting))]
        example = Example(
            id=f"{name}-{number}",
            question=_with_gaps(sentence, word),
            context=rest,
            answers=(Span(word, places[word]),),
            title=title,
        )
        yield Cloze(example, tuple(sorted(elsewhere)))


def _names(context: str, sentences: list[tuple[int, int]]) -> set[str]:
    """Names and numbers, as `make_cloze` describes them."""
    starts = {start for start, _ in sentences}
    words = set(tokenize(context))
    names = set()
    for word, start, _ in _whole_words(context):
        fits = word.isdecimal()
        if not fits:
            fits = word[0].isupper() and len(word) > 1 and start not in starts
            fits = fits and word.lower() not in words and normalize_answer(word)
        if fits:
            names.add(word)
    return names


def _whole_words(text: str) -> list[tuple[str, int, int]]:
    """The tokens and their places, but for those that are a part of a number."""
    return [
        (text[start:end], start, end)
        for start, end in token_spans(text)
        if not splits_number(text, start, end)
    ]


def _without(context: str, start: int, end: int) -> str:
    """The context without a sentence and the white space after it."""
    return f"{context[:start]}{context[end:].lstrip()}".strip()


def _with_gaps(text: str, word: str) -> str:
    """The text with gaps at all whole words that are this one."""
    for here, start, end in reversed(_whole_words(text)):
        if here == word:
            text = f"{text[:start]}{GAP}{text[end:]}"
    return text


def first_places(text: str) -> dict[str, int]:
    """Where each word stands first; left out where that is a part of a number.

    A reader of words could not tell the 3 after a 3.5 from that within it.
    """
    places: dict[str, int | None] = {}
    for start, end in token_spans(text):
        place = None if splits_number(text, start, end) else start
        places.setdefault(text[start:end], place)
    return {word: place for word, place in places.items() if place is not None}
