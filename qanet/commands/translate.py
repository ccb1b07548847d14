"""`python -m qanet translate`: trains translation models and translates with them."""

import argparse
import contextlib
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from qanet.backend import load_keras
from qanet.commands.options import (
    add_training,
    check_directory,
    check_not_set,
    positive,
    training_configuration,
)
from qanet.console import say, standard_input
from qanet.errors import reading
from qanet.memory import keep_blocks


def add_parser(commands) -> None:
    """Adds the command and its own commands, `train` and `run`."""
    parser = commands.add_parser(
        "translate",
        help="train a translation model, or translate with any translator",
        description="Translation models of our own, for back-translation.",
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _add_train(actions)
    _add_run(actions)


def _add_train(actions) -> None:
    train = actions.add_parser(
        "train",
        help="train a model on pairs of sentences",
        description="Trains a translation model on pairs of sentences and measures "
        "BLEU on pairs that it has not seen.",
        epilog="example:\n"
        "  python -m qanet translate train --data en-fr.tsv.gz \\\n"
        "      --output runs/en-fr --set training.steps=8000",
    )
    train.add_argument(
        "--data",
        nargs="+",
        default=[],
        metavar="FILE",
        help="pairs, a line each, with a tab between; plain or .gz; what follows a "
        "second tab is not read",
    )
    train.add_argument(
        "--reverse",
        action="store_true",
        help="translate from the second language into the first",
    )
    add_training(
        train,
        "model.name=recurrent (the model before the Transformer), model.width=512 or "
        "training.steps=20000",
    )
    train.set_defaults(command=_train)


def _add_run(actions) -> None:
    run = actions.add_parser(
        "run",
        help="translate text",
        description="Translates a text, a sentence a line.",
    )
    run.add_argument(
        "--translator",
        required=True,
        metavar="TRANSLATOR",
        help="nmt:DIR with the directory that translate train made, "
        "nmt-sample:0.8:DIR to draw at a temperature, apertium:eng-spa, "
        "ctranslate2:DIR or ctranslate2:DIR:SOURCE:TARGET",
    )
    run.add_argument(
        "--input",
        default="-",
        metavar="FILE",
        help="UTF-8, a sentence a line (default: standard input)",
    )
    run.add_argument(
        "--candidates",
        type=partial(positive, most=100),
        default=1,
        metavar="K",
        help="translations of a sentence, the best first, a tab between them "
        "(default: %(default)s)",
    )
    run.set_defaults(command=_run)


def _train(options: argparse.Namespace) -> None:
    from qanet.files import check_readable
    from qanet.translation.run import TranslationRun

    run = TranslationRun(options.output)
    check_directory(options.output)
    values = {"data": options.data, "reverse": options.reverse}
    config = training_configuration(
        options,
        run,
        {"data": "data", "reverse": "reverse"},
        values,
        "translate train",
    )
    if config.model.name == "recurrent":
        for key in ("model.heads", "model.feed_forward"):
            check_not_set(options, key, "with model.name=recurrent")
    if options.resume and (metrics := run.load_metrics()):
        say(f"{run.directory}: finished, there is nothing to resume")
        _tell(metrics)
        return
    check_readable(config.data)
    keep_blocks()
    load_keras()

    from qanet.training.translator_trainer import train_translator

    metrics = train_translator(config, run, options.resume)
    if metrics is None:
        return
    _tell(metrics)
    say(f"written to {run.directory}")


def _tell(metrics: dict[str, float]) -> None:
    say(
        f"BLEU on {metrics['pairs']:,} pairs held out: greedy "
        f"{metrics['bleu_greedy']:.1f}, 5 beams {metrics['bleu_beam_5']:.1f}"
    )


def _run(options: argparse.Namespace) -> None:
    from qanet.files import check_readable
    from qanet.translation.translator import open_translator

    # A pipe is read as it comes.
    if options.input != "-" and not Path(options.input).is_fifo():
        check_readable([options.input])
    translator = open_translator(options.translator)
    lines = _lines(options.input)
    while part := list(islice(lines, translator.batch_size)):
        for found in translator.translate(part, options.candidates):
            say("\t".join(found), flush=True)


def _lines(path: str) -> Iterator[str]:
    from qanet.files import decoded_lines

    with reading(path), contextlib.ExitStack() as stack:
        if path == "-":
            file = standard_input()
        else:
            file = stack.enter_context(open(path, "rb"))
        yield from decoded_lines(file, path)
