"""What several commands have in common: options and checks."""

import argparse
import json
from pathlib import Path

from qanet.errors import UserError

RUNS = Path("runs")

# Stands for an empty answer where people read it.
NO_ANSWER = "(no answer)"


def add_configuration(parser: argparse.ArgumentParser, preset: str) -> None:
    """The options that `configured` makes a configuration of."""
    from qanet.config import preset_names

    parser.add_argument(
        "--preset",
        default=preset,
        metavar="NAME",
        help=f"one of {', '.join(preset_names())} (default: %(default)s)",
    )
    for option, purpose in (("--train", "train on"), ("--dev", "evaluate on")):
        parser.add_argument(
            option,
            metavar="FILE",
            help=f"SQuAD v1.1 or v2.0 JSON to {purpose}, or 'squad' or 'squad_v2' to "
            "download either version, or 'sample' (default: the preset's)",
        )
    parser.add_argument(
        "--vectors",
        nargs="+",
        metavar="FILE",
        help="pretrained word vectors as text, GloVe, fastText or word2vec, plain or "
        ".gz; those of several files are joined (default: the preset's; none trains "
        "its own)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change one setting, for example training.steps=1000; may be repeated",
    )


def configured(options: argparse.Namespace, key: str, value: object):
    """The preset with one setting of the command's own and those of the options."""
    from qanet.config import load_preset

    files = {
        "data.train": options.train,
        "data.dev": options.dev,
        "vocabulary.vectors": options.vectors,
    }
    overrides = [f"{k}={json.dumps(file)}" for k, file in files.items() if file]
    own = f"{key}={json.dumps(value)}"
    return load_preset(options.preset, [own, *options.set, *overrides])


def check_output(directory: Path) -> None:
    """Refuses an `--output` that is a file."""
    if directory.exists() and not directory.is_dir():
        raise UserError(f"--output {directory}: is a file; give a directory")


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)
