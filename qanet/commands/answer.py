"""`python -m qanet answer`: answers a question on a text file."""

import argparse
import json
import sys
from pathlib import Path

from qanet.commands.options import NO_ANSWER, check_reader, positive, standard_input
from qanet.console import is_verbose, load_keras, log, say
from qanet.errors import UserError, reading_text


def add_parser(commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "answer",
        help="answer a question on a text file",
        description="Answers a question on a text of any length. What it is doing is "
        "said where standard error is a terminal, or with --verbose.",
        epilog="example:\n"
        "  python -m qanet answer --model runs/qanet-tiny \\\n"
        '      --context-file passage.txt --question "Who built the bridge?" --top-k 3',
    )
    parser.add_argument("--model", type=Path, required=True, metavar="RUN_DIR")
    parser.add_argument(
        "--context-file",
        required=True,
        metavar="FILE",
        help="the passage, a text file in UTF-8; - reads standard input",
    )
    parser.add_argument("--question", required=True, metavar="TEXT")
    parser.add_argument(
        "--top-k", type=positive, default=1, metavar="K", help="number of answers"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    context = _read_text(options.context_file)
    _check_texts(options, context)
    check_reader(options.model)
    # Other programs read what is printed, so only a person is told more.
    is_told = is_verbose() or (sys.stderr is not None and sys.stderr.isatty())
    if is_told:
        log.info("loading %s", options.model)
    load_keras()

    from qanet.reader import Reader

    reader = Reader.load(options.model)
    (answers,) = reader.answer_many(
        [(options.question, context)],
        options.top_k,
        progress="reading" if is_told else None,
    )
    for answer in answers:
        if options.json:
            fields = ("text", "start", "end", "score")
            record = {field: getattr(answer, field) for field in fields}
            say(json.dumps(record, ensure_ascii=False))
        else:
            # One line an answer, also where it runs over a line break.
            text = " ".join(answer.text.split()) or NO_ANSWER
            say(f"{answer.score:6.1%}  {text}")


def _check_texts(options: argparse.Namespace, context: str) -> None:
    """Refuses what a reader would refuse, in the words of the command line."""
    from qanet.models.limits import ReadingLimits
    from qanet.text.tokenizer import count_tokens

    for option, text in (
        (f"--context-file {options.context_file}", context),
        ("--question", options.question),
    ):
        if not text.strip():
            raise UserError(f"{option}: is blank; give some text")
    length = count_tokens(options.question)
    if length > ReadingLimits.question:
        raise UserError(
            f"--question: has {length:,} words and signs; shorten it to at most "
            f"{ReadingLimits.question:,}"
        )


def _read_text(path: str) -> str:
    with reading_text(path):
        raw = standard_input().read() if path == "-" else Path(path).read_bytes()
        # Not read_text: it would turn "\r\n" into "\n" and so shift the offsets.
        return raw.decode("utf-8")
