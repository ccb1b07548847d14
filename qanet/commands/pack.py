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
from qanet.commands.start_from import vocabulary_to_pack, with_vocabulary
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
    from qanet.datasets.training_data import describe_counts, save_packed
    from qanet.datasets.training_files import check_files, read_training_data
    from qanet.files import cache_directory
    from qanet.models.registry import contextual_of

    config = configured(options, "vocabulary.extra_vectors", 0)
    if contextual_of(config.model):
        raise UserError(
            "model.contextual: a packed data set has no texts, which it reads; leave "
            "it out"
        )
    if config.data.packed:
        raise UserError("data.packed: is packed already; leave it out")
    check_dev(options, config)
    vocabulary = None
    if config.training.start_from:
        config = with_vocabulary(options, config)
        vocabulary = vocabulary_to_pack(config)
    sets = (config.data.train, config.data.dev, *config.data.augmented.values())
    files = (*sets, *config.vocabulary.vectors, config.training.teacher)
    check_new_file(options.output, filter(None, files))
    check_files(config, weights=False)
    data = read_training_data(config, cache_directory(), vocabulary)
    save_packed(options.output, data)
    size = options.output.stat().st_size / 2**20
    for name, counts in data.counts.items():
        say(f"{name}: {describe_counts(counts)}")
    say(f"{options.output}: {data.vocabulary.describe()}, {size:.1f} MiB")
