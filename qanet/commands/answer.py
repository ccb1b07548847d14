"""`python -m qanet answer`: answers a question on a text file."""

import argparse
import json
import sys
from pathlib import Path

from qanet.commands.options import NO_ANSWER, positive
from qanet.errors import reading_text


def add_parser(commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "answer",
        help="answer a question on a text file",
        description="Answers a question on a text of any length.",
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
    from qanet.reader import Reader

    context = _read_text(options.context_file)
    reader = Reader.load(options.model)
    (answers,) = reader.answer_many([(options.question, context)], options.top_k)
    for answer in answers:
        if options.json:
            fields = ("text", "start", "end", "score")
            record = {field: getattr(answer, field) for field in fields}
            print(json.dumps(record, ensure_ascii=False))
        else:
            # One line an answer, also where it runs over a line break.
            text = " ".join(answer.text.split()) or NO_ANSWER
            print(f"{answer.score:6.1%}  {text}")


def _read_text(path: str) -> str:
    with reading_text(path):
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        # Not read_text: it would turn "\r\n" into "\n" and so shift the offsets.
        return raw.decode("utf-8")
