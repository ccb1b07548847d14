"""Cloze questions: a sentence with a gap, whose word stands in the context.

They are made of the passages of any SQuAD file, or read from the files of CNN/Daily
Mail (Hermann et al., 2015) and the Children's Book Test (Hill et al., 2016). As
examples of a data set all of them are alike: the answer is one token, marked where it
stands first.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qanet.augmentation.numbers import splits_number
from qanet.console import log
from qanet.datasets.squad import Example, Span
from qanet.errors import UserError, reading_text
from qanet.evaluation.metrics import normalize_answer
from qanet.text.sentences import sentence_spans
from qanet.text.tokenizer import token_spans, tokenize

# The gap, one token; as in the Children's Book Test.
GAP = "XXXXX"

# Characters of a passage; a longer one is left out. Each sentence is asked for with the
# rest as its context, so that time and output grow with the square.
LONGEST = 50_000

CNN_GAP = "@placeholder"
ENTITY = re.compile(r"@(entity\d+)")
BOOK_SENTENCES = 20


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
                f"{title or 'a passage'}: left out, {len(context):,} characters; split "
                f"it into passages of at most {LONGEST:,}"
            )
            continue
        sentences = sentence_spans(context)
        candidates = _names(context, sentences)
        for place, (start, end) in enumerate(sentences):
            sentence, rest = context[start:end], _without(context, start, end)
            places = _first_places(rest)
            elsewhere = places.keys() & candidates
            here = {word for word, _, _ in _whole_words(sentence)}
            # Sorted, or the draw would depend on the order of a set.
            fitting = sorted(elsewhere & here)
            if not fitting:
                continue
            word = fitting[rng.integers(len(fitting))]
            example = Example(
                id=f"cloze-{number}-{place}",
                question=_replaced(sentence, word, GAP),
                context=rest,
                answers=(Span(word, places[word]),),
                title=title,
            )
            questions.append(Cloze(example, tuple(sorted(elsewhere))))
    if not questions:
        raise UserError(
            "no passage has a name or a number that stands in two of its sentences; "
            "give a file with longer passages"
        )
    return questions


def read_cnn(directory: str | os.PathLike[str]) -> list[Cloze]:
    """Reads the `.question` files of CNN/Daily Mail.

    Args:
        directory: holds one file a question: lines of source, context, question,
            answer, and the entities, with an empty line between each.

    Raises:
        UserError: there is no such file, one of them is not of that form, or no answer
            is a word of its context.
    """
    paths = sorted(Path(directory).glob("*.question"))
    if not paths:
        raise UserError(f"{directory}: holds no .question files of CNN/Daily Mail")
    questions = []
    for path in paths:
        with reading_text(path):
            parts = path.read_text(encoding="utf-8").strip().split("\n\n")
        if len(parts) < 4 or CNN_GAP not in parts[2]:
            raise UserError(
                f"{path}: must hold source, context, question with {CNN_GAP} and "
                "answer, with an empty line between each"
            )
        # An entity's name is one token.
        context, question, answer = (ENTITY.sub(r"\1", part) for part in parts[1:4])
        entities = {f"entity{name}" for name in re.findall(r"@entity(\d+)", parts[1])}
        question = question.replace(CNN_GAP, GAP)
        example = _example(path.stem, question, context, answer)
        if example:
            questions.append(Cloze(example, tuple(sorted(entities))))
    return _kept(questions, len(paths), directory)


def read_books(path: str | os.PathLike[str]) -> list[Cloze]:
    """Reads a file of the Children's Book Test.

    Args:
        path: a text file. A question is 20 numbered sentences and one with a gap,
            followed on its line by the answer and, after a tab more, the candidates;
            an empty line ends it.

    Raises:
        UserError: the file cannot be read or is not of that form, or no answer is a
            word of its context.
    """
    with reading_text(path):
        text = Path(path).read_text(encoding="utf-8")
    questions, blocks = [], re.split(r"\n\s*\n", text.strip())
    for number, block in enumerate(blocks, 1):
        where = f"{path}: question {number}"
        lines = [line.partition(" ")[2] for line in block.split("\n")]
        fields = lines[-1].split("\t")
        if len(lines) != BOOK_SENTENCES + 1 or len(fields) < 4 or GAP not in fields[0]:
            raise UserError(
                f"{where}: must be {BOOK_SENTENCES} numbered sentences and one with "
                f"{GAP}, its answer and its candidates between tabs"
            )
        context = "\n".join(lines[:-1])
        example = _example(f"book-{number}", fields[0], context, fields[1])
        candidates = set(fields[-1].split("|")) & set(tokenize(context))
        if example:
            questions.append(Cloze(example, tuple(sorted(candidates))))
    return _kept(questions, len(blocks), path)


def _example(
    identifier: str, question: str, context: str, answer: str
) -> Example | None:
    """A question that was read; `None` where the answer is no word of the context."""
    answer = answer.strip()
    places = _first_places(context)
    if answer not in places:
        return None
    answers = (Span(answer, places[answer]),)
    return Example(identifier, question.strip(), context, answers)


def _kept(questions: list[Cloze], read: int, where: object) -> list[Cloze]:
    """The questions; tells how many of those that were read are left out."""
    if not questions:
        raise UserError(f"{where}: no answer is a word of its context")
    if left_out := read - len(questions):
        log.info(
            f"{where}: {left_out:,} questions left out, whose answers are no words of "
            "their contexts"
        )
    return questions


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


def _replaced(text: str, word: str, other: str) -> str:
    """The text with other words at all whole words that are this one."""
    for here, start, end in reversed(_whole_words(text)):
        if here == word:
            text = f"{text[:start]}{other}{text[end:]}"
    return text


def _first_places(text: str) -> dict[str, int]:
    """Where each word stands first; left out where that is a part of a number.

    A reader of words could not tell the 3 after a 3.5 from that within it.
    """
    places: dict[str, int | None] = {}
    for start, end in token_spans(text):
        place = None if splits_number(text, start, end) else start
        places.setdefault(text[start:end], place)
    return {word: place for word, place in places.items() if place is not None}
