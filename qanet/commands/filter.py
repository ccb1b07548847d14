"""`python -m qanet filter`: keeps the questions whose answers a reader finds."""

import argparse

from qanet.commands.options import (
    add_readers,
    check_new_file,
    check_readers,
    load_backend,
    path_of,
)
from qanet.console import say
from qanet.errors import UserError


def add_parser(commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "filter",
        help="keep the questions of a data set whose answers a reader finds",
        description="Reads a data set with a trained reader, or with several, whose "
        "probabilities are averaged, and keeps the questions that it answers rightly. "
        "For paraphrases: a question whose answer is lost in translation is left out.",
        epilog="example:\n"
        "  python -m qanet filter --model runs/bert-6 --input train.es.json \\\n"
        "      --output train.es.kept.json",
    )
    add_readers(parser)
    parser.add_argument(
        "--input", required=True, metavar="FILE", help="SQuAD v1.1 or v2.0 JSON"
    )
    parser.add_argument(
        "--output", type=path_of, required=True, metavar="FILE.json", help="the file"
    )
    parser.add_argument(
        "--least-f1",
        type=float,
        default=0.5,
        metavar="F1",
        help="F1 of the reader's answer and the given one, at least, between 0 and 1 "
        "(default: %(default)s)",
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from qanet.datasets.sources import load_examples
    from qanet.datasets.squad import write_squad

    if not 0.0 < options.least_f1 <= 1.0:
        raise UserError(
            f"--least-f1 {options.least_f1:g}: must be above 0 and at most 1"
        )
    check_new_file(options.output, [options.input])
    check_readers(options.model)
    examples = load_examples(options.input, "train").examples
    load_backend(options.model)

    from qanet.augmentation.filtering import answered
    from qanet.ensemble import load_readers

    kept = answered(load_readers(options.model), examples, options.least_f1)
    if not kept:
        raise UserError(
            f"{options.input}: the reader finds the answer to none of its "
            f"{len(examples):,} questions; nothing is written"
        )
    write_squad(options.output, kept)
    say(
        f"{options.output}: {len(kept):,} of {len(examples):,} questions kept "
        f"({len(kept) / len(examples):.1%})"
    )
