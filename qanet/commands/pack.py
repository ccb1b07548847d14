"""`python -m qanet pack`: packs a data set into one file."""

import argparse

from qanet.commands.options import (
    CACHE,
    add_configuration,
    check_dev,
    check_new_file,
    configured,
    path_of,
)
from qanet.commands.start_from import started
from qanet.console import say
from qanet.errors import UserError


def add_parser(commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "pack",
        help="pack a data set and its vectors into one file",
        description="Packs all that a training reads of its data into one compressed "
        "file, for a machine without TensorFlow, network or much room: train there "
        "with `python -m qanet train --packed FILE`. Keeps the vectors of the data's "
        "words only, unless vocabulary.extra_vectors is set; with training.start_from, "
        "those of that run. Settings of the model and of the training, but for its "
        f"teacher, are given to that command. {CACHE}",
    )
    add_configuration(parser, "qanet", "training.teacher=teacher.npz")
    parser.add_argument(
        "--output", type=path_of, required=True, metavar="FILE.npz", help="the file"
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from qanet.datasets.training_data import save_packed
    from qanet.datasets.training_files import check_files, read_training_data
    from qanet.files import cache_directory
    from qanet.models.registry import contextual_of
    from qanet.run import Run

    config = configured(options, "vocabulary.extra_vectors", 0)
    if contextual_of(config.model):
        raise UserError(
            "model.contextual: a packed data set has no texts, which it reads; leave "
            "it out"
        )
    if config.data.packed:
        raise UserError("data.packed: is packed already; leave it out")
    check_dev(options, config)
    if config.training.start_from:
        config = started(options, config)
    sets = (config.data.train, config.data.dev, *config.data.augmented.values())
    files = (*sets, *config.vocabulary.vectors, config.training.teacher)
    check_new_file(options.output, filter(None, files))
    check_files(config, weights=False)
    # A training that starts elsewhere reads words and pieces as that run does.
    start = config.training.start_from
    vocabulary = Run(start).load_vocabulary() if start else None
    data = read_training_data(config, cache_directory(), vocabulary)
    save_packed(options.output, data)
    size = options.output.stat().st_size / 2**20
    say(
        f"{options.output}: {len(data.train):,} questions to train on, "
        f"{len(data.dev):,} of dev, {data.vocabulary.describe()}, "
        f"{size:.1f} MiB"
    )
