"""`python -m qanet pretrain`: trains an encoder on text without questions."""

import argparse
import shlex
from pathlib import Path
from typing import Protocol

from qanet.backend import load_keras
from qanet.commands.options import (
    add_training,
    check_directory,
    check_not_set,
    training_configuration,
)
from qanet.console import say
from qanet.memory import keep_blocks


def add_parser(commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "pretrain",
        help="train an encoder on text, for a reader to begin with",
        description="Trains an encoder on text without questions, and measures it on "
        "documents that it has not seen. Objective mlm is BERT's: masked pieces "
        "are predicted, and whether one segment of text follows another; it "
        "needs pip install 'qanet[bert]'. Objective bilm is ELMo's: each word is "
        "predicted from those before it, and from those after it. "
        "docs/pretraining.md tells what is done. At the end it prints the command that "
        "trains a reader with the encoder.",
        epilog="example:\n"
        "  python -m qanet pretrain --objective mlm --text train-v1.1.json \\\n"
        "      news.txt --output runs/pretrained --set training.steps=50000",
    )
    parser.add_argument(
        "--objective", choices=OBJECTIVES, required=True, help="what is learned"
    )
    parser.add_argument(
        "--text",
        nargs="+",
        default=[],
        metavar="FILE",
        help="what is read: SQuAD files (.json), of which the contexts are taken, and "
        "UTF-8 text, plain or .gz, a paragraph a line and a blank line after each "
        "document",
    )
    add_training(
        parser,
        "model.width=384, training.whole_words=true, or model.pretrained=DIR to go on "
        "from a public model",
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from qanet.files import check_readable

    objective = OBJECTIVES[options.objective]
    run = objective.run(options.output)
    check_directory(options.output)
    values = {"objective": options.objective, "data": {"text": options.text}}
    config = training_configuration(
        options, run, {"text": "data.text"}, values, "pretrain"
    )
    if options.resume and (metrics := run.load_metrics()):
        say(f"{run.directory}: finished, there is nothing to resume")
        objective.tell(config, run, metrics)
        return
    check_readable(config.data.text)
    if not options.resume:
        objective.check(options, config)
    keep_blocks()
    load_keras()
    metrics = objective.train(config, run, options.resume)
    if metrics is not None:
        objective.tell(config, run, metrics)


class Objective(Protocol):
    """What differs between the objectives."""

    @staticmethod
    def run(directory: Path):
        """Its run directory."""

    @staticmethod
    def check(options: argparse.Namespace, config) -> None:
        """Refuses settings of a new training; raises `UserError`."""

    @staticmethod
    def train(config, run, resume: bool) -> dict[str, float] | None:
        """Trains; gives what the first of several workers has measured."""

    @staticmethod
    def tell(config, run, metrics: dict[str, float]) -> None:
        """Prints what was measured, and what the encoder is for."""


class Masked(Objective):
    """BERT's objectives."""

    @staticmethod
    def run(directory: Path):
        from qanet.pretraining.run import MLMRun

        return MLMRun(directory)

    @staticmethod
    def check(options: argparse.Namespace, config) -> None:
        from qanet.models.bert_weights import check_pretrained

        if config.model.pretrained:
            check_not_set(options, "data.pieces", "with model.pretrained")
            check_pretrained(config.model)

    @staticmethod
    def train(config, run, resume: bool) -> dict[str, float] | None:
        from qanet.training.mlm_pretrainer import pretrain_mlm

        return pretrain_mlm(config, run, resume)

    @staticmethod
    def tell(config, run, metrics: dict[str, float]) -> None:
        from qanet.models.bert import POSITIONS
        from qanet.models.bert_weights import size_options

        say(
            f"held out, at step {metrics['step']:,}: loss of a masked piece "
            f"{metrics['masked_loss']:.3f}, {100 * metrics['masked_accuracy']:.1f} % "
            "of them predicted rightly; of the pairs "
            f"{100 * metrics['next_sentence_accuracy']:.1f} %"
        )
        quoted = shlex.quote(str(run.encoder_directory))
        say(f"encoder: {run.encoder_directory}")
        this = f"--set model.pretrained={quoted} "
        this += size_options(config.model.model_dump())
        say(
            "fine-tune it: python -m qanet train --preset bert-6 --train squad "
            f"--dev squad {this}"
        )
        if config.data.length < POSITIONS and not config.model.pretrained:
            say(
                f"positions from {config.data.length} on are not trained; for longer "
                f"texts go on with --set data.length={POSITIONS} {this}"
            )


class Bidirectional(Objective):
    """ELMo's objective."""

    @staticmethod
    def run(directory: Path):
        from qanet.pretraining.run import BiLMRun

        return BiLMRun(directory)

    @staticmethod
    def check(options: argparse.Namespace, config) -> None:
        pass  # There is nothing but the texts.

    @staticmethod
    def train(config, run, resume: bool) -> dict[str, float] | None:
        from qanet.training.bilm_pretrainer import pretrain_bilm

        return pretrain_bilm(config, run, resume)

    @staticmethod
    def tell(config, run, metrics: dict[str, float]) -> None:
        say(
            f"held out, at step {metrics['step']:,}: perplexity "
            f"{metrics['perplexity']:.1f}"
        )
        quoted = shlex.quote(str(run.encoder_directory))
        say(f"encoder: {run.encoder_directory}")
        say(
            "use its vectors: python -m qanet train --preset slqa --train squad "
            f"--dev squad --set model.contextual={quoted} "
            f"--set model.contextual_layers={config.model.layers + 1}"
        )


OBJECTIVES: dict[str, type[Objective]] = {"mlm": Masked, "bilm": Bidirectional}
