"""Questions from a file, a JSON object a line, answered in order.

A row is `{"question": …, "context": …}`; the context may be a list of passages, whose
answers compete, and there may be an `id`. Its answers are a line too, with the number
of the row, so that work that was interrupted goes on where it stopped.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

from qanet.decoding import Answer
from qanet.errors import UserError, reading, writing
from qanet.files import digest_of, parse_json
from qanet.onnx_reader import reader_files
from qanet.reader import Reader
from qanet.text.tokenizer import count_tokens

# Rows that are answered together, and their bytes, unless one row has more; and the
# longest row in bytes.
TOGETHER = 256
BYTES = 2**22
LONGEST = 2**23


@dataclass(frozen=True)
class Row:
    """A question, or why it is none.

    Attributes:
        number: of its line, from 1.
        id: what the row calls itself; `None` without a name.
        question, context: what is asked, and of what.
        error: what is wrong with the row, where something is.
        size: bytes of its line, its question counted once for each passage.
    """

    number: int
    id: Any = None
    question: str = ""
    context: str | list[str] = ""
    error: str | None = None
    size: int = 0


def read_rows(lines: Iterable[bytes | None], first: int = 1) -> Iterator[Row]:
    """The rows of some lines; blank lines are left out.

    Args:
        lines: as `lines_of` gives them.
        first: the number of the first one.
    """
    for number, line in enumerate(lines, start=first):
        if line is None:
            yield Row(number, error=f"is longer than {LONGEST // 2**20} MiB")
        elif line.strip():
            yield _bounded(parse_row(number, line), len(line))


def _bounded(row: Row, size: int) -> Row:
    """The row with its size, of a line of so many bytes; refused where it is too large.

    Each passage is read with the question.
    """
    if isinstance(row.context, list):
        size += len(row.question.encode()) * (len(row.context) - 1)
    if size > LONGEST:
        error = "has more passages than are read with such a question"
        row = Row(row.number, row.id, error=error)
    return replace(row, size=size)


def parts_of(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows that are answered together, which bounds the memory they need."""
    part, size = [], 0
    for row in rows:
        if part and (len(part) == TOGETHER or size + row.size > BYTES):
            yield part
            part, size = [], 0
        part.append(row)
        size += row.size
    if part:
        yield part


def parse_row(number: int, line: bytes) -> Row:
    """The question of a line."""
    try:
        # A file may begin with a byte order mark.
        values = json.loads(line.decode("utf-8-sig"))
        json.dumps(values, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeDecodeError:
        return Row(number, error="is not UTF-8")
    except UnicodeEncodeError:
        return Row(number, error="has half a surrogate pair, which is no text")
    except (ValueError, RecursionError):
        return Row(number, error="is not JSON")
    if not isinstance(values, dict):
        return Row(number, error='is no object with "question" and "context"')
    id, question, context = (values.get(k) for k in ("id", "question", "context"))
    passages = context if isinstance(context, list) else [context]
    texts = {"question": [question], "context": passages}
    for name, some in texts.items():
        if not some or not all(isinstance(text, str) for text in some):
            return Row(number, id, error=f'has no "{name}" that is text')
        if not all(text.strip() for text in some) or not count_tokens(question):
            return Row(number, id, error=f'has a blank "{name}"')
    return Row(number, id, question, context)


def answer_rows(reader: Reader, rows: Sequence[Row], top_k: int) -> list[dict]:
    """The lines of the answers of some rows, as JSON objects.

    Args:
        reader: the reader.
        rows: the rows; one that is none is told as such.
        top_k: answers to each.
    """
    rows = [_checked(row, reader) for row in rows]
    good = [row for row in rows if not row.error]
    pairs = [(row.question, row.context) for row in good]
    found = iter(reader.answer_many(pairs, top_k) if pairs else [])
    return [
        _named(row) | ({"error": row.error} if row.error else _told(row, next(found)))
        for row in rows
    ]


def _checked(row: Row, reader: Reader) -> Row:
    if row.error:
        return row
    length = reader.vocabulary.count(row.question)
    if not length:
        return Row(row.number, row.id, error='has a blank "question"')
    if length <= reader.limits.question:
        return row
    error = (
        f"has a question of {length:,} {reader.vocabulary.unit}; at most "
        f"{reader.limits.question:,} are read"
    )
    return Row(row.number, row.id, error=error)


def _named(row: Row) -> dict:
    return {"row": row.number} | ({} if row.id is None else {"id": row.id})


def _told(row: Row, answers: Sequence[Answer]) -> dict:
    values = Answer.in_passage if isinstance(row.context, str) else asdict
    return {"question": row.question, "answers": list(map(values, answers))}


def lines_of(file: IO[bytes], name: str) -> Iterator[bytes | None]:
    """The lines of a file; `None` for one that is too long.

    Raises:
        UserError: the file, of this name, cannot be read.
    """
    with reading(name):
        while line := file.readline(LONGEST + 1):
            if len(line) <= LONGEST:
                yield line
                continue
            while line and not line.endswith(b"\n"):
                line = file.readline(LONGEST)
            yield None


def key_of(reader: Path, top_k: int, questions: Path) -> str:
    """Tells answers from those of another reader, or to other questions.

    Raises:
        UserError: a file cannot be read.
    """
    return digest_of([*reader_files(reader), questions], str(top_k))


def rows_done(path: Path) -> tuple[int, list[int]]:
    """The number of the last row in a file of answers, and of those that are none.

    What was cut off in the middle of a line is removed.

    Returns:
        0 and none, where there is no such file.

    Raises:
        UserError: the file is something else.
    """
    last, size, bad = 0, 0, []
    try:
        with path.open("r+b") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                answered = parse_json(line)
                row = answered["row"]
                if type(row) is not int or not last < row <= sys.maxsize:
                    raise ValueError("rows do not rise")
                last, size = row, size + len(line)
                if "error" in answered:
                    bad.append(last)
            file.truncate(size)
    except FileNotFoundError:
        return 0, []
    except (OSError, OverflowError, ValueError, KeyError, TypeError):
        raise UserError(
            f"{path}: is no unfinished file of answers; remove it"
        ) from None
    return last, bad


def write_answers(path: Path, answered: Sequence[dict]) -> None:
    """Adds the lines of some answers to a file; an interruption does not lose them.

    Raises:
        UserError: it cannot be written.
    """
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in answered)
    with writing(path), path.open("ab") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
