"""`python train.py`: trains a reader."""

import argparse
import re
from pathlib import Path

from qanet.backend import load_keras
from qanet.commands.options import (
    CACHE,
    add_configuration,
    check_dev,
    check_directory,
    check_not_set,
    check_optimizer,
    configured,
    path_of,
    refuse_twice,
    refuse_with_resume,
    set_keys,
    tell_short,
)
from qanet.commands.start_from import check_weights, with_vocabulary
from qanet.config import preset_names
from qanet.console import NO_ANSWER, log, printable, say
from qanet.errors import UserError
from qanet.memory import keep_blocks

RUNS = Path("runs")
SHOWN_QUESTIONS = 5
# Settings of a vocabulary that mean nothing to readers of word pieces.
VOCABULARY_OF_WORDS = (
    "vocabulary.extra_vectors",
    "vocabulary.word_width",
    "vocabulary.word_min_count",
    "vocabulary.character_min_count",
    "vocabulary.characters_per_word",
)
OF_CHARACTERS = (
    "model.character_dropout",
    "model.character_filters",
    "model.character_kernel",
)
# Of the vocabulary's those that mean nothing where the word vectors are given.
OF_TRAINED_VECTORS = ("vocabulary.word_width", "vocabulary.word_min_count")


def add_parser(commands, prog: str | None = None) -> None:
    """Adds the command; `prog` is what it is called by, where not by its name."""
    parser = commands.add_parser(
        "train",
        prog=prog,
        help="train a reader",
        description="Trains a reader on a data set in the SQuAD format. Without "
        "options it trains preset qanet-tiny on the sample that ships with it. "
        f"{CACHE}",
        epilog="example:\n"
        "  python -m qanet train --preset qanet-small --train train-v1.1.json \\\n"
        "      --dev dev-v1.1.json --vectors glove.840B.300d.txt \\\n"
        "      --set training.steps=5000",
    )
    add_configuration(parser, "qanet-tiny")
    parser.add_argument(
        "--packed",
        metavar="FILE",
        help="a packed data set, which `python -m qanet pack` made, in the place of "
        "--train, --dev and --vectors",
    )
    parser.add_argument(
        "--output",
        type=path_of,
        metavar="DIR",
        help="run directory (default: a new one below runs/)",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the run in --output, by default the preset's newest below "
        "runs/, from its newest checkpoint, with the settings it was started with",
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    """Trains, evaluates, and shows some answers."""
    from qanet.datasets.training_files import check_files

    if options.resume:
        run, config = _run_to_resume(options)
        metrics = run.load_metrics()
        if metrics:
            say(f"{run.directory}: finished, there is nothing to resume")
            say(_scores(metrics))
            return
        log.info("resuming %s", run.directory)
    else:
        run, config = _new_run(options)
    check_directory(run.directory)
    check_files(config, options.resume)
    keep_blocks()
    load_keras()

    from qanet.training.session import train_run

    report = train_run(config, run, resume=options.resume)
    if report is None:
        return
    say(f"\n{_scores(report.metrics)}\n")
    for example, answer in report.samples(SHOWN_QUESTIONS):
        gold = example.answers[0].text if example.answers else NO_ANSWER
        say(f"question:  {printable(example.question)}")
        say(f"gold:      {printable(gold)}")
        say(f"predicted: {printable(answer.text) or NO_ANSWER}\n")
    say(f"run directory: {run.directory}")


def _run_to_resume(options: argparse.Namespace):
    """The run that is to be continued, and its configuration."""
    from qanet.run import Run

    run = Run(options.output or _newest_directory(RUNS / options.preset))
    config = run.load_config()
    refuse_with_resume(options, ("train", "dev", "vectors", "packed"), run)
    return run, config


def _new_run(options: argparse.Namespace):
    """The run that is to be started, and its configuration."""
    from qanet.run import Run

    config = configured(options, "data.packed", options.packed)
    _check_effect(options, config)
    if options.packed or config.data.packed:
        _check_packed(options)
    check_dev(options, config)
    if config.training.start_from:
        config = with_vocabulary(options, config)
        check_weights(config)
    is_first = True
    if config.distribution.strategy == "multi_worker":
        from qanet.training.cluster import is_first_worker

        _check_workers(options, config)
        is_first = is_first_worker()
    run = Run(options.output or _new_directory(RUNS / options.preset))
    if is_first:
        run.check_free()
    return run, config


def _check_workers(options: argparse.Namespace, config) -> None:
    """Refuses what several machines cannot share."""
    from qanet.models.registry import contextual_of

    strategy = "distribution.strategy=multi_worker"
    if contextual_of(config.model):
        raise UserError(
            f"model.contextual: the workers of {strategy} would wait for each other "
            "where only some have the vectors in their cache; train on one machine"
        )
    if not options.output:
        raise UserError(f"{strategy}: give --output, a directory that all workers see")


def _check_effect(options: argparse.Namespace, config) -> None:
    """Refuses to set what means nothing to this optimizer or kind of reader."""
    from qanet.models.registry import MODELS, contextual_of

    check_optimizer(options, config)
    model = config.model
    if MODELS[model.name].text == "words":
        ignored = {"vocabulary.pieces": "without a reader of word pieces"}
        if config.vocabulary.vectors:
            ignored |= dict.fromkeys(OF_TRAINED_VECTORS, "with vocabulary.vectors")
        elif not (config.data.packed or config.training.start_from):
            ignored["vocabulary.extra_vectors"] = "without vocabulary.vectors"
        if not model.character_filters:
            ignored["model.character_kernel"] = "with model.character_filters=0"
        if not model.character_width:
            ignored |= dict.fromkeys(OF_CHARACTERS, "with model.character_width=0")
    else:
        ignored = dict.fromkeys(VOCABULARY_OF_WORDS, "without a reader of words")
        if model.pretrained:
            ignored["vocabulary.pieces"] = "with model.pretrained, which has its own"
    if not contextual_of(model):
        ignored["model.contextual_layers"] = "without model.contextual=DIRECTORY"
    training = config.training
    if not training.warmup_steps:
        ignored["training.warmup"] = "with training.warmup_steps=0"
    for key, why in ignored.items():
        check_not_set(options, key, why)
    tell_short(training)


def _check_packed(options: argparse.Namespace) -> None:
    """Refuses to set what a packed data set has already: it would change nothing."""
    if options.train or options.dev or options.vectors:
        raise UserError(
            "--packed takes the place of --train, --dev and --vectors; give it alone"
        )
    refuse_twice(options, {"packed": "data.packed"})
    brought = ("vocabulary", "data.train", "data.dev", "data.augmented")
    # Of vectors that are trained, which the file does not hold.
    free = "vocabulary.word_width"
    for key in set_keys(options):
        # A key may be a part of one of these, or hold it.
        settled = any(
            f"{key}.".startswith(f"{name}.") or name.startswith(f"{key}.")
            for name in brought
        )
        if settled and key != free:
            raise UserError(
                f"--set {key}: the packed data set settles this; pack it anew with "
                "this setting"
            )


def _scores(metrics: dict) -> str:
    return (
        f"exact match {metrics['exact_match']:.1f}  F1 {metrics['f1']:.1f}  "
        f"on {metrics['total']} questions"
    )


def _new_directory(wanted: Path) -> Path:
    """`wanted`, or the first of `wanted-2`, `wanted-3`, ... that is free."""
    directory, number, taken = wanted, 2, _names_of_others(wanted)
    while directory.exists() or directory.name in taken:
        directory = wanted.with_name(f"{wanted.name}-{number}")
        number += 1
    return directory


def _names_of_others(wanted: Path) -> set[str]:
    """What the first runs of other presets are called: `bert-6` is none of `bert`'s."""
    return set(preset_names()) - {wanted.name}


def _newest_directory(wanted: Path) -> Path:
    """Of the directories that `_new_directory` made, the one started last.

    Raises:
        UserError: none of them holds a run.
    """
    name = re.compile(rf"{re.escape(wanted.name)}(-\d+)?")
    others = _names_of_others(wanted)
    configs = [
        path
        for path in wanted.parent.glob("*/config.json")
        if name.fullmatch(path.parent.name) and path.parent.name not in others
    ]
    if not configs:
        raise UserError(
            f"{wanted}: there is no run of this preset to resume; give its directory "
            "as --output"
        )
    return max(configs, key=lambda path: path.stat().st_mtime).parent
