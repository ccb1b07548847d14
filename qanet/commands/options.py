"""What several commands have in common: options and checks."""

import argparse
import json
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import qanet
from qanet.backend import load_keras
from qanet.console import complain, log, printable
from qanet.errors import UserError, refuse_existing

CACHE = (
    "What is made of data and vectors is kept in ~/.cache/qanet ($XDG_CACHE_HOME/qanet "
    "where that is set), so that a second start is fast; it may be deleted."
)


class _Formatter(argparse.HelpFormatter):
    """Fills paragraphs, and leaves lines that begin with a blank, commands, alone."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        return "\n".join(
            line if line.startswith(" ") else fill(line, width, indent)
            for line in text.splitlines()
        )


class Parser(argparse.ArgumentParser):
    """A parser with the options that all commands have; its commands are made of it."""

    def __init__(self, **settings):
        super().__init__(formatter_class=_Formatter, **settings)
        group = self.add_argument_group("output")
        level = group.add_mutually_exclusive_group()
        # Suppressed, or a command's default would overrule what stands before it.
        level.add_argument(
            "--quiet",
            dest="level",
            action="store_const",
            const=logging.WARNING,
            default=argparse.SUPPRESS,
            help="results, warnings and errors alone: no remarks, no progress",
        )
        level.add_argument(
            "--verbose",
            dest="level",
            action="store_const",
            const=logging.DEBUG,
            default=argparse.SUPPRESS,
            help="also what the libraries below report, and where an error arose",
        )
        group.add_argument(
            "--version", action="version", version=f"qanet {qanet.__version__}"
        )

    def error(self, message: str) -> NoReturn:
        """Ends as any other mistake does, in one line instead of the usage's many."""
        complain(f"error: {printable(message)}; see {self.prog} --help")
        sys.exit(2)


def add_configuration(
    parser: argparse.ArgumentParser, preset: str, setting: str = "training.steps=1000"
) -> None:
    """The options that `configured` makes a configuration of.

    Args:
        parser: the command's.
        preset: the one by default.
        setting: an example of what to set.
    """
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
    _add_settings(parser, setting)


def configured(options: argparse.Namespace, key: str, value: object):
    """The preset with one setting of the command's own and those of the options."""
    from qanet.config import load_preset

    keys = {"train": "data.train", "dev": "data.dev", "vectors": "vocabulary.vectors"}
    refuse_twice(options, keys)
    overrides = [
        f"{k}={json.dumps(getattr(options, name))}"
        for name, k in keys.items()
        if getattr(options, name) is not None
    ]
    own = f"{key}={json.dumps(value)}"
    return load_preset(options.preset, [own, *options.set, *overrides])


def check_dev(options: argparse.Namespace, config) -> None:
    """Refuses data of one's own without a dev set, for which the preset's would be."""
    from qanet.datasets.sources import is_name

    is_given = options.dev or not {"data", "data.dev"}.isdisjoint(set_keys(options))
    train = config.data.train
    if not is_name(train) and not is_given:
        raise UserError(
            f"--train {train}: give --dev too, data that are not trained on; "
            f"the preset's are {config.data.dev}"
        )


def set_keys(options: argparse.Namespace) -> list[str]:
    """The keys of `--set`."""
    return [item.partition("=")[0].strip() for item in options.set]


def refuse_twice(options: argparse.Namespace, keys: Mapping[str, str]) -> None:
    """Refuses to set, by its own key, what an option gives too.

    Args:
        options: the command's.
        keys: what each of these options, by name, sets.
    """
    for name, key in keys.items():
        if getattr(options, name) and key in set_keys(options):
            raise UserError(f"--set {key}: is what --{name} sets; give one of them")


def check_not_set(options: argparse.Namespace, key: str, why: str) -> None:
    """Refuses to set, by its own key, what changes nothing beside other settings."""
    if key in set_keys(options):
        raise UserError(f"--set {key}: changes nothing {why}")


def check_optimizer(options: argparse.Namespace, config) -> None:
    """Refuses to set constants that the optimizer does not know."""
    name = config.training.optimizer
    if name != "adamw":
        key = "training.weight_decay"
        check_not_set(options, key, "without training.optimizer=adamw")
    if name == "adadelta":
        check_not_set(options, "training.beta_1", f"with training.optimizer={name}")


def add_training(parser: argparse.ArgumentParser, settings: str) -> None:
    """The options of a training on text; `settings` are examples of what to set."""
    parser.add_argument(
        "--output", type=path_of, required=True, metavar="DIR", help="directory to make"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the training in --output from its newest checkpoint",
    )
    _add_settings(parser, settings)


def _add_settings(parser: argparse.ArgumentParser, examples: str) -> None:
    """Adds `--set`."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=f"change one setting, for example {examples}; may be repeated",
    )


def tell_short(training) -> None:
    """Warns of a training that ends while its rate still rises."""
    if training.warmup_steps > training.steps:
        log.warning(
            f"training.warmup_steps={training.warmup_steps:,}: the training ends "
            f"before, at step {training.steps:,}, and never has its full rate"
        )


def training_configuration(
    options: argparse.Namespace,
    run,
    keys: Mapping[str, str],
    values: dict[str, Any],
    command: str,
):
    """The configuration of a training on text, the stored one with `--resume`.

    Args:
        options: those of `add_training` and the command's own.
        run: the run directory.
        keys: what the options that tell what is trained on set, by their names, the
            files' first.
        values: nested settings that these options stand for.
        command: names the values in error messages.

    Raises:
        UserError: no file, a run that is there already or is not, or options that do
            not go with `--resume`.
    """
    from qanet.settings import configure

    if options.resume:
        refuse_with_resume(options, keys, run)
        return run.load_config()
    run.check_free()
    refuse_twice(options, keys)
    files = next(iter(keys))
    if not getattr(options, files):
        raise UserError(f"--{files}: give at least one file")
    config = configure(run.settings, values, options.set, command)
    check_optimizer(options, config)
    tell_short(config.training)
    return config


def refuse_with_resume(options: argparse.Namespace, names: Iterable[str], run) -> None:
    """Refuses options that a run which goes on has its own values of, and `--set`."""
    for name in (*names, "set"):
        if getattr(options, name):
            raise UserError(
                f"--{name} does not go with --resume, which continues with the "
                f"settings in {run.config_path}"
            )


def check_directory(directory: Path) -> None:
    """Refuses an `--output` that cannot be made or written, before the work for it."""
    option = f"--output {directory}"
    if directory.exists() and not directory.is_dir():
        raise UserError(f"{option}: is a file; give a directory")
    _check_place(directory, option)


def check_file(
    path: Path, option: str = "--output", others: Iterable[str | Path] = ()
) -> None:
    """Refuses a file that cannot be written, and what is there and is no file.

    Also one of the `others`, files that the command reads or writes.
    """
    if os.path.realpath(path) in map(os.path.realpath, others):
        raise UserError(f"{option} {path}: is given for something else, too")
    if path.exists() and not path.is_file():
        what = "a directory" if path.is_dir() else "no ordinary file"
        raise UserError(f"{option} {path}: is {what}; give a file")
    _check_place(path.parent, f"{option} {path}")


def check_new_file(path: Path, others: Iterable[str | Path] = ()) -> None:
    """Refuses an `--output` that is there already, or cannot be written."""
    check_file(path, others=others)
    refuse_existing(path)


def _check_place(directory: Path, option: str) -> None:
    """Refuses a directory that can neither be written nor made."""
    place = next(p for p in (directory, *directory.parents) if os.path.lexists(p))
    if not place.is_dir():
        what = "a file" if place.exists() else "a link to nothing"
        raise UserError(f"{option}: {place} is {what}; give another place")
    try:
        # Not by its permissions, which do not tell of a file system that is read-only.
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise UserError(
            f"{option}: {place} cannot be written: {error.strerror}; give another place"
        ) from None


def add_readers(parser: argparse.ArgumentParser) -> None:
    """Adds `--model`, one reader or several."""
    parser.add_argument(
        "--model",
        type=path_of,
        nargs="+",
        required=True,
        metavar="RUN_DIR",
        help="directory of a training, or an ONNX export; several are averaged",
    )


def load_backend(readers: Sequence[Path]) -> None:
    """Imports Keras where some of the directories are runs, which it computes."""
    from qanet.onnx_reader import is_export

    if not all(map(is_export, readers)):
        load_keras()


def check_readers(directories: Iterable[Path]) -> None:
    """Refuses directories without a trained reader, before Keras is waited for."""
    for directory in directories:
        check_reader(directory)


def check_reader(directory: Path) -> None:
    """As `check_readers`, of one."""
    from qanet.onnx_reader import is_export
    from qanet.run import Run

    if is_export(directory):
        return
    run = Run(directory)
    for file in ("saved_model.pb", "model.tflite"):
        if (directory / file).is_file() and not run.config_path.is_file():
            raise UserError(
                f"{directory}: has {file}, an export for other programs; give the run "
                "that it was made from, or an export with --format onnx"
            )
    run.load_config()
    run.check_weights()


def path_of(text: str) -> Path:
    """The path that an option gives."""
    if not text:
        raise argparse.ArgumentTypeError("is empty; give a name")
    return Path(text)


def positive(text: str, most: int = 1_000_000) -> int:
    """A whole number from 1 to `most`."""
    if not re.fullmatch("[0-9]{1,9}", text) or not 1 <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {most:,}")
    return int(text)
