"""Cloze questions from the files of CNN/Daily Mail (Hermann et al., 2015) and of the
Children's Book Test (Hill et al., 2016)."""

import os
import re
from pathlib import Path

from qanet.augmentation.cloze import GAP, Cloze, first_places
from qanet.console import log
from qanet.datasets.squad import Example, Span
from qanet.errors import UserError, reading
from qanet.text.tokenizer import tokenize

CNN_GAP = "@placeholder"
ENTITY = re.compile(r"@(entity\d+)")
BOOK_SENTENCES = 20


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
        # It becomes the id.
        if not path.stem.isprintable():
            raise UserError(f"{str(path)!a}: has a name that is no text; rename it")
        with reading(path):
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
    with reading(path):
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
    places = first_places(context)
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
