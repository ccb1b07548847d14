"""Reading and writing files in the SQuAD format, versions 1.1 and 2.0.

Reading checks every field that it uses, so that nothing later has to. A gold answer
whose offset is wrong is searched for in its context, and whatever was mended is
counted. All offsets are in code points, as Python indexes strings.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from qanet.errors import UserError, reading
from qanet.files import parse_json, write_text
from qanet.text.tokenizer import count_tokens
from qanet.utf8 import is_encodable

T = TypeVar("T")

MAX_FILE_BYTES = 2 * 1024**3
COUNTS = (
    "articles",
    "paragraphs",
    "questions",
    "answers",
    "impossible",
    "offsets_repaired",
    "answers_not_found",
)
_JSON_TYPES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "a whole number",
    float: "a number with a decimal point",
    bool: "true or false",
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a context.

    Attributes:
        text: The piece itself.
        start: Offset of its first character in the context, or -1 where the context
            does not hold `text`.
    """

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Example:
    """One question on one context, with its gold answers.

    Attributes:
        id: Unique within a file.
        question: The question, not blank.
        context: The passage, not blank. Examples of one paragraph share one object.
        answers: Gold answers; empty where `impossible`.
        title: Title of the article that the context is from.
        impossible: Whether the context does not answer the question (SQuAD 2.0).
    """

    id: str
    question: str
    context: str
    answers: tuple[Span, ...]
    title: str = ""
    impossible: bool = False


@dataclass
class SquadFile:
    """What a file holds.

    Attributes:
        examples: In the order of the file.
        counts: How many of each of `COUNTS` were read.
    """

    examples: list[Example]
    counts: dict[str, int]


def read_squad(path: str | os.PathLike[str]) -> SquadFile:
    """Reads a SQuAD file.

    A question without answers is impossible, as in the official SQuAD 2.0 evaluation,
    unless `is_impossible` contradicts, which is an error.

    Args:
        path: A JSON file of at most 2 GiB, in UTF-8.

    Returns:
        The examples, and counts of what was read and mended.

    Raises:
        UserError: The file cannot be read, or something in it is missing, of the wrong
            type, blank, contradictory or there twice. The message says where.
    """
    return parse_squad(read_json(path), str(path))


def parse_squad(document: Any, path: str) -> SquadFile:
    """Does what `read_squad` does, with a document that is read already.

    Args:
        document: What the JSON stands for.
        path: The document's name, for error messages.

    Raises:
        UserError: it is malformed.
    """
    counts = dict.fromkeys(COUNTS, 0)
    examples: dict[str, Example] = {}
    for i, article in enumerate(_field(document, "data", list, where=f"{path}")):
        where = f"{path}: data[{i}]"
        title = _optional(article, "title", str, default="", where=where)
        where += f" {title!r}"
        counts["articles"] += 1
        for j, paragraph in enumerate(_field(article, "paragraphs", list, where)):
            at_paragraph = f"{where}, paragraphs[{j}]"
            context = _text(paragraph, "context", at_paragraph)
            counts["paragraphs"] += 1
            for k, question in enumerate(_field(paragraph, "qas", list, at_paragraph)):
                at_question = f"{at_paragraph}, qas[{k}]"
                example = _read_question(question, context, title, counts, at_question)
                if example.id in examples:
                    raise UserError(
                        f"{at_question}: id {example.id!r} is already taken by an "
                        "earlier question; give each its own"
                    )
                examples[example.id] = example
    if not examples:
        raise UserError(f"{path}: holds no questions; give a file with at least one")
    return SquadFile(list(examples.values()), counts)


def write_squad(path: str | os.PathLike[str], examples: Iterable[Example]) -> None:
    """Writes examples as a SQuAD file, whole or not at all.

    Args:
        path: File to write or replace.
        examples: What to write.

    Raises:
        UserError: The file cannot be written.
    """
    text = json.dumps(to_document(examples), ensure_ascii=False)
    write_text(Path(path), text + "\n")


def to_document(examples: Iterable[Example]) -> dict[str, Any]:
    """Examples as the document of a SQuAD file, of 2.0 where any is impossible.

    Examples with one title become one article and, within it, those with one context
    become one paragraph, each in the order of first appearance.
    """
    articles: dict[str, dict[str, list[Example]]] = {}
    version = "1.1"
    for example in examples:
        if example.impossible:
            version = "v2.0"
        paragraphs = articles.setdefault(example.title, {})
        paragraphs.setdefault(example.context, []).append(example)
    data = [
        {
            "title": title,
            "paragraphs": [
                {"context": context, "qas": [_question_to_json(e) for e in group]}
                for context, group in paragraphs.items()
            ],
        }
        for title, paragraphs in articles.items()
    ]
    return {"version": version, "data": data}


def spread(items: Sequence[T], count: int) -> list[T]:
    """At most `count` of the items, evenly spread over all, in their order."""
    count = min(count, len(items))
    return [items[i * len(items) // count] for i in range(count)]


def read_json(path: str | os.PathLike[str]) -> Any:
    """Reads a JSON file of at most 2 GiB, in UTF-8.

    Raises:
        UserError: The file is missing, unreadable, too large, not UTF-8 or not JSON.
    """
    if str(path).endswith(".gz"):
        raise UserError(f"{path}: is packed; unpack it with gunzip")
    with reading(path):
        if os.path.getsize(path) > MAX_FILE_BYTES:
            raise UserError(
                f"{path}: is larger than {MAX_FILE_BYTES:,} bytes; split the file"
            )
        # Editors on Windows put a byte order mark before UTF-8; "-sig" drops it.
        text = Path(path).read_text(encoding="utf-8-sig")
    try:
        return parse_json(text)
    except ValueError as error:
        raise UserError(f"{path}: is not valid JSON: {error}") from error


def _read_question(
    question: Any, context: str, title: str, counts: dict[str, int], where: str
) -> Example:
    """Makes the example of one entry of `qas`, and adds it to `counts`."""
    identifier = _text(question, "id", where)
    where += f" {identifier!r}"
    answers = tuple(
        _read_answer(answer, context, counts, f"{where}, answers[{i}]")
        for i, answer in enumerate(_field(question, "answers", list, where))
    )
    impossible = _optional(
        question, "is_impossible", bool, default=not answers, where=where
    )
    if impossible and answers:
        raise UserError(f"{where}: is_impossible is true, yet there are answers")
    if not impossible and not answers:
        raise UserError(f"{where}: is_impossible is false, yet there are no answers")
    counts["questions"] += 1
    counts["answers"] += len(answers)
    counts["impossible"] += impossible
    return Example(
        id=identifier,
        question=_question(question, where),
        context=context,
        answers=answers,
        title=title,
        impossible=impossible,
    )


def _read_answer(answer: Any, context: str, counts: dict[str, int], where: str) -> Span:
    """Makes the span of one entry of `answers`, its offset mended where wrong."""
    text = _text(answer, "text", where)
    start = _field(answer, "answer_start", int, where)
    if start >= 0 and context.startswith(text, start):
        return Span(text, start)
    found = _nearest(context, text, start)
    counts["answers_not_found" if found == -1 else "offsets_repaired"] += 1
    return Span(text, found)


def _nearest(context: str, text: str, offset: int) -> int:
    """Start of the occurrence of `text` nearest to `offset`, the earlier of two.

    Returns -1 where there is none.
    """
    here = max(offset, 0)
    before = context.rfind(text, 0, here + len(text))
    after = context.find(text, here)
    if before == -1 or after == -1:
        return max(before, after)
    return before if offset - before <= after - offset else after


def _field(record: Any, key: str, kind: type, where: str) -> Any:
    """The value of `key` in `record`, checked to be of exactly the type `kind`."""
    if not isinstance(record, dict):
        raise UserError(f"{where}: must be an object, not {_JSON_TYPES[type(record)]}")
    if key not in record:
        raise UserError(f"{where}: {key!r} is missing")
    value = record[key]
    # Not isinstance: to Python a bool is an int, in a file it is a mistake.
    if type(value) is not kind:
        raise UserError(
            f"{where}: {key!r} must be {_JSON_TYPES[kind]}, "
            f"not {_JSON_TYPES[type(value)]}"
        )
    # JSON can escape half a pair, but nothing could write it to a file again.
    if kind is str and not is_encodable(value):
        raise UserError(f"{where}: {key!r} holds half a surrogate pair")
    return value


def _optional(record: Any, key: str, kind: type, default: Any, where: str) -> Any:
    """As `_field`, or `default` where `record` has no `key`."""
    if isinstance(record, dict) and key not in record:
        return default
    return _field(record, key, kind, where)


def _text(record: Any, key: str, where: str) -> str:
    """As `_field` for a string, which must not be blank."""
    value = _field(record, key, str, where)
    if not value.strip():
        raise UserError(f"{where}: {key!r} is blank")
    return value


def _question(record: Any, where: str) -> str:
    """As `_text`; it must hold a word or a sign, not zero-width characters alone."""
    value = _text(record, "question", where)
    if not count_tokens(value):
        raise UserError(f"{where}: 'question' is blank")
    return value


def _question_to_json(example: Example) -> dict[str, Any]:
    return {
        "id": example.id,
        "question": example.question,
        "answers": [
            {"text": answer.text, "answer_start": answer.start}
            for answer in example.answers
        ],
        "is_impossible": example.impossible,
    }
