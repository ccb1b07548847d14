"""`python train.py`: trains a reader."""

import argparse
from pathlib import Path

from qanet.commands.options import (
    NO_ANSWER,
    RUNS,
    add_configuration,
    check_output,
    configured,
)
from qanet.errors import UserError

SHOWN_QUESTIONS = 5


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="train.py",
        description="Trains a reader on a data set in the SQuAD format. Without "
        "options it trains preset qanet-tiny on the sample that ships with it.",
        epilog="example: python train.py --preset qanet-small --train train-v1.1.json "
        "--dev dev-v1.1.json --vectors glove.840B.300d.txt --set training.steps=5000",
    )
    add_configuration(parser, "qanet-tiny")
    parser.add_argument(
        "--features",
        metavar="FILE",
        help="what `python -m qanet features` made, in the place of --train, --dev "
        "and --vectors",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="run directory (default: a new one below runs/)",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the run in --output from its newest checkpoint, with the "
        "settings it was started with",
    )
    return parser


def run(options: argparse.Namespace) -> None:
    """Trains, evaluates, and shows some answers."""
    from qanet.run import Run

    if options.resume:
        run = Run(options.output or RUNS / options.preset)
        config = run.load_config()
        for option in ("train", "dev", "vectors", "features", "set"):
            if getattr(options, option):
                raise UserError(
                    f"--{option} does not go with --resume, which continues with the "
                    f"settings in {run.config_path}"
                )
    else:
        if options.features and (options.train or options.dev or options.vectors):
            raise UserError(
                "--features takes the place of --train, --dev and --vectors; "
                "give it alone"
            )
        config = configured(options, "data.features", options.features)
        is_first = True
        if config.distribution.strategy == "multi_worker":
            from qanet.training.cluster import is_first_worker

            is_first = is_first_worker()
            if not options.output:
                raise UserError(
                    "distribution.strategy=multi_worker: give --output, a directory "
                    "that all workers see"
                )
        run = Run(options.output or _new_directory(RUNS / options.preset))
        check_output(run.directory)
        if is_first and run.config_path.exists():
            raise UserError(
                f"{run.directory}: already holds a run; continue it with --resume or "
                "give another --output"
            )

    from qanet.training.session import train_run

    report = train_run(config, run, resume=options.resume)
    if report is None:
        return
    print(f"\nexact match {report.metrics['exact_match']:.1f}", end="  ")
    print(f"F1 {report.metrics['f1']:.1f}  on {report.metrics['total']} questions\n")
    for example, answer in report.samples(SHOWN_QUESTIONS):
        gold = example.answers[0].text if example.answers else NO_ANSWER
        print(f"question:  {example.question.strip()}")
        print(f"gold:      {gold}\npredicted: {answer.text or NO_ANSWER}\n")
    print(f"run directory: {run.directory}")


def _new_directory(wanted: Path) -> Path:
    """`wanted`, or the first of `wanted-2`, `wanted-3`, ... that is free."""
    directory, number = wanted, 2
    while directory.exists():
        directory = wanted.with_name(f"{wanted.name}-{number}")
        number += 1
    return directory
