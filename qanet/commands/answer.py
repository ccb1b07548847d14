"""`python -m qanet answer`: answers a question on a text file, or many."""

import argparse
import contextlib
import json
import sys
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from qanet.commands.options import (
    check_file,
    check_new_file,
    check_reader,
    load_backend,
    path_of,
    positive,
)
from qanet.console import (
    NO_ANSWER,
    is_verbose,
    log,
    printable,
    progress_bar,
    say,
    standard_input,
)
from qanet.errors import UserError, reading, refuse_existing, writing
from qanet.shipped import shipped_reader
from qanet.utf8 import is_encodable


def add_parser(commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "answer",
        help="answer a question on a text file, or many questions from a file",
        description="Answers a question on a text of any length, or with --input many "
        "questions, as they come. What it is doing is said where standard error is a "
        "terminal, or with --verbose; that the reader of the package reads, always.",
        epilog="examples:\n"
        '  python -m qanet answer --question "Who built it?" \\\n'
        "      --context-file passage.txt --top-k 3\n"
        "  python -m qanet answer --model runs/qanet-tiny --input questions.jsonl \\\n"
        "      --output answers.jsonl",
    )
    parser.add_argument(
        "--model",
        type=path_of,
        metavar="RUN_DIR",
        help="directory of a training, or an ONNX export (default: the reader "
        "that is part of the package)",
    )
    parser.add_argument(
        "--context-file",
        metavar="FILE",
        help="the passage, a text file in UTF-8; - reads standard input",
    )
    parser.add_argument("--question", metavar="TEXT", help="the question")
    parser.add_argument(
        "--input",
        metavar="FILE.jsonl",
        help='many questions in the place of one: a line each, {"question": "...", '
        '"context": "..."}, where the context may be a list of passages and there may '
        'be an "id", at most 8 MiB a line; - reads standard input',
    )
    parser.add_argument(
        "--output",
        default="-",
        metavar="FILE.jsonl",
        help="where the answers to --input go, a line each; the same command goes on "
        "where it was interrupted (default: standard output)",
    )
    parser.add_argument(
        "--top-k", type=positive, default=1, metavar="K", help="number of answers"
    )
    parser.add_argument(
        "--json", action="store_true", help="print JSON, as --input always does"
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    if options.input is None:
        _answer_one(options)
    else:
        _answer_many(options)


def _answer_one(options: argparse.Namespace) -> None:
    for option in ("context_file", "question"):
        if getattr(options, option) is None:
            name = option.replace("_", "-")
            raise UserError(f"--{name}: is missing; give it, or many with --input")
    if options.output != "-":
        raise UserError("--output goes with --input")
    context = _read_text(options.context_file)
    _check_texts(options, context)
    options.model = options.model or shipped_reader()
    check_reader(options.model)
    reader = _load(options.model)
    (answers,) = reader.answer_many(
        [(options.question, context)],
        options.top_k,
        progress="reading" if _is_told() else None,
    )
    for answer in answers:
        if options.json:
            say(json.dumps(answer.in_passage(), ensure_ascii=False))
        else:
            # One line an answer, also where it runs over a line break.
            text = printable(answer.text) or NO_ANSWER
            say(f"{answer.score:6.1%}  {text}")


def _answer_many(options: argparse.Namespace) -> None:
    if options.context_file is not None or options.question is not None:
        raise UserError("--input brings its questions; leave out the other one")
    output = None if options.output == "-" else Path(options.output)
    if output:
        check_new_file(output)
    options.model = options.model or shipped_reader()
    check_reader(options.model)
    with contextlib.ExitStack() as stack:
        if options.input == "-":
            source = standard_input()
        elif options.input.endswith(".gz"):
            raise UserError(
                f"--input {options.input}: is packed; unpack it with gunzip, or give "
                "--input - and what gunzip -c writes"
            )
        else:
            with reading(options.input):
                source = stack.enter_context(open(options.input, "rb"))
        if output:
            _answer_into(options, source, output)
        else:
            _refuse_bad(options, _answer_rows(options, source, 0, _say_all))


def _answer_into(options: argparse.Namespace, source: BinaryIO, output: Path) -> None:
    """Answers into a file, which is there when all is done."""
    from qanet.files import locked, write_text
    from qanet.question_file import key_of, rows_done, write_answers

    part = output.with_name(f"{output.name}.part")
    key_path = output.with_name(f"{output.name}.part.key")
    # A stream cannot be read twice, so its work has no key.
    key = ""
    if not _is_stream(options.input):
        key = key_of(options.model, options.top_k, Path(options.input))
    for path in (part, key_path):
        check_file(path, others=[options.input])
    # What the reader raises is no fault of this file.
    with contextlib.ExitStack() as stack:
        with writing(part):
            part.parent.mkdir(parents=True, exist_ok=True)
            part.touch()
            stack.enter_context(locked(part))
        try:
            refuse_existing(output)  # Another process may have finished it.
            _refuse_answers_of_others(part, key_path, key)
            write_text(key_path, key)
            done, bad = rows_done(part)
            if done:
                log.info("going on after row %d, with %s", done, part)
            bad += _answer_rows(options, source, done, partial(write_answers, part))
            # Another program may have written it in the meantime.
            refuse_existing(output)
            with writing(part):
                part.replace(output)
        finally:
            # Where there is nothing to go on with.
            if not (part.exists() and part.stat().st_size):
                part.unlink(missing_ok=True)
                key_path.unlink(missing_ok=True)
    _refuse_bad(options, bad)


def _is_stream(name: str) -> bool:
    """Whether an input is read once, as it comes: standard input, or another pipe."""
    return name == "-" or not Path(name).is_file()


def _refuse_answers_of_others(part: Path, key_path: Path, key: str) -> None:
    begun = part.stat().st_size > 0
    if begun and not key:
        raise UserError(
            f"{part}: has answers, and of a stream nothing tells whether they are to "
            "its questions; remove it"
        )
    if begun and _read_key(key_path) != key:
        raise UserError(
            f"{part}: has answers of another reader, to other questions or with "
            "another --top-k; give those again, or remove it"
        )


def _read_key(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return None


def _say_all(answered: list[dict]) -> None:
    for line in answered:
        say(json.dumps(line, ensure_ascii=False), flush=True)


def _answer_rows(
    options: argparse.Namespace,
    source: BinaryIO,
    done: int,
    write: Callable[[list[dict]], None],
) -> list[int]:
    """Answers row by row; a bad row is told, and the others are answered.

    Args:
        options: those of the command.
        source: the rows.
        done: the number of the last row that was answered before.
        write: what is done with the answers.

    Returns:
        The numbers of the bad rows.
    """
    from qanet.question_file import answer_rows, lines_of, parts_of, read_rows

    rows = read_rows(islice(lines_of(source, options.input), done, None), done + 1)
    # A program that asks may wait for each answer before it asks on.
    is_stream = _is_stream(options.input)
    parts = ([row] for row in rows) if is_stream else parts_of(rows)
    reader = _load(options.model)
    bad = []
    with progress_bar(unit="row", disable=not _is_told()) as bar:
        for some in parts:
            answered = answer_rows(reader, some, options.top_k)
            write(answered)
            for line in answered:
                if "error" in line:
                    bad.append(line["row"])
                    log.warning(f"{options.input}: row {line['row']} {line['error']}")
            bar.update(len(some))
    return bad


def _refuse_bad(options: argparse.Namespace, bad: list[int]) -> None:
    if bad:
        raise UserError(
            f"{options.input}: {len(bad):,} rows have no answer, the first being "
            f"row {bad[0]}"
        )


def _load(directory: Path):
    """The reader of a directory."""
    # Other programs read what is printed, so only a person is told this.
    if _is_told():
        log.info("loading %s", directory)
    load_backend([directory])

    from qanet.reader import Reader

    return Reader.load(directory)


def _is_told() -> bool:
    return sys.stderr is not None and (is_verbose() or sys.stderr.isatty())


def _check_texts(options: argparse.Namespace, context: str) -> None:
    """Refuses what no reader of words reads, in the words of the command line."""
    from qanet.models.limits import ReadingLimits
    from qanet.text.tokenizer import count_tokens

    if not is_encodable(options.question):
        raise UserError("--question: is not UTF-8; give it in UTF-8")
    length = count_tokens(options.question)
    for option, is_blank in (
        (f"--context-file {options.context_file}", not context.strip()),
        ("--question", length == 0),
    ):
        if is_blank:
            raise UserError(f"{option}: is blank; give some text")
    if length > ReadingLimits.question:
        raise UserError(
            f"--question: has {length:,} words and signs; shorten it to at most "
            f"{ReadingLimits.question:,}"
        )


def _read_text(path: str) -> str:
    with reading(path):
        raw = standard_input().read() if path == "-" else Path(path).read_bytes()
        # Not read_text: it would turn "\r\n" into "\n" and so shift the offsets.
        return raw.decode("utf-8")
