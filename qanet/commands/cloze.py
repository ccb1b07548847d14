"""`python -m qanet cloze`: makes a data set of cloze questions."""

import argparse
from pathlib import Path

from qanet.commands.options import check_new_file, path_of
from qanet.console import say
from qanet.errors import UserError

SPLIT, SEED = "train", 42


def add_parser(commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "cloze",
        help="make a data set of cloze questions, for preset aoa-cloze",
        description="Writes a SQuAD file whose questions are sentences with a gap. "
        "They come from the passages of a SQuAD file, where a name or a number stands "
        "in two sentences, or from the files of CNN/Daily Mail or of the Children's "
        "Book Test.",
        epilog="example:\n"
        "  python -m qanet cloze --input train-v1.1.json --output train.cloze.json\n"
        "  python -m qanet cloze --input dev-v1.1.json --output dev.cloze.json\n"
        "  python -m qanet train --preset aoa-cloze --train train.cloze.json \\\n"
        "      --dev dev.cloze.json",
    )
    parser.add_argument(
        "--input",
        required=True,
        metavar="SOURCE",
        help="a SQuAD .json file, or 'squad', 'squad_v2' or 'sample'; a directory of "
        "CNN/Daily Mail with .question files; or a .txt file of the Children's Book "
        "Test",
    )
    parser.add_argument(
        "--output", type=path_of, required=True, metavar="FILE.json", help="the file"
    )
    parser.add_argument(
        "--split",
        choices=("train", "dev"),
        default=SPLIT,
        help="which part of a data set that is given by name (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="N",
        default=SEED,
        help="fixes which word of a SQuAD file's sentences is left out where several "
        "could be (default: %(default)s)",
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from qanet.augmentation.cloze import make_cloze, most_frequent_share
    from qanet.augmentation.cloze_files import read_books, read_cnn
    from qanet.datasets.sources import is_name, load_examples
    from qanet.datasets.squad import write_squad

    check_new_file(options.output, [options.input])
    if options.seed < 0:
        raise UserError(f"--seed {options.seed}: must not be below 0")
    source, named = Path(options.input), is_name(options.input)
    if options.split != SPLIT and not named:
        raise UserError("--split: changes nothing with files of your own; leave it out")
    is_cnn = source.is_dir() and not named
    if is_cnn or source.suffix == ".txt":
        if options.seed != SEED:
            raise UserError(
                "--seed: changes nothing with CNN/Daily Mail and the Children's Book "
                "Test, whose gaps are given; leave it out"
            )
        questions = read_cnn(source) if is_cnn else read_books(source)
    else:
        file = load_examples(options.input, options.split)
        questions = make_cloze(file.examples, options.seed)
    write_squad(options.output, (question.example for question in questions))
    say(
        f"{options.output}: {len(questions):,} questions; the commonest candidate in "
        f"the context answers {100 * most_frequent_share(questions):.1f} % of them"
    )
