"""`python -m qanet pretrain`: trains an encoder on text without questions."""

import argparse
from pathlib import Path

from qanet.commands.options import check_directory
from qanet.console import load_keras, say
from qanet.errors import UserError, reading_text


def add_parser(commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "pretrain",
        help="train an encoder on text, for a reader to begin with",
        description="Trains an encoder on text without questions, and measures it on "
        "documents that it has not seen. Objective mlm is BERT's: pieces that are "
        "hidden are predicted, and whether one segment of text follows another. Needs "
        "pip install 'qanet[bert]'; docs/pretraining.md tells what is done.",
        epilog="example:\n"
        "  python -m qanet pretrain --objective mlm --text train-v1.1.json \\\n"
        "      news.txt.gz --output runs/pretrained --set training.steps=50000\n"
        "At the end it prints the command that fine-tunes the encoder.",
    )
    parser.add_argument(
        "--objective", choices=("mlm",), required=True, help="what is learned"
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
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="directory to make"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the training in --output from its last measurement",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change one setting, for example model.width=384, "
        "training.whole_words=true, or model.pretrained=DIR to go on from a public "
        "model; may be repeated",
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from qanet.models.bert import POSITIONS
    from qanet.models.pretrained import check_sizes
    from qanet.pretraining.run import PretrainingRun

    run = PretrainingRun(options.output)
    check_directory(options.output)
    if options.resume:
        if options.text or options.set:
            raise UserError(
                "--text and --set do not go with --resume, which continues with the "
                f"settings in {run.config_path}"
            )
        config = run.load_config()
    else:
        config = _configured(options, run)
    for file in config.data.text:
        with reading_text(file), open(file, "rb"):
            pass
    if config.model.pretrained and not options.resume:
        check_sizes(config.model)
    load_keras()

    from qanet.training.pretrainers import pretrain

    metrics = pretrain(config, run, options.resume)
    if metrics is None:
        return
    say(
        f"held out, at step {metrics['step']:,}: loss of a hidden piece "
        f"{metrics['masked_loss']:.3f}, {100 * metrics['masked_accuracy']:.1f} % of "
        "them predicted rightly; of the pairs "
        f"{100 * metrics['next_sentence_accuracy']:.1f} %"
    )
    say(f"encoder: {run.encoder_directory}")
    say(f"fine-tune it: {_fine_tuning(config.model, run.encoder_directory)}")
    if config.data.length < POSITIONS and not config.model.pretrained:
        say(
            f"positions from {config.data.length} on are not trained; for longer texts "
            f"go on with --set data.length={POSITIONS} "
            f"--set model.pretrained={run.encoder_directory}"
        )


def _configured(options: argparse.Namespace, run):
    """The configuration of a training that is to be started."""
    from qanet.pretraining.config import PretrainingConfig
    from qanet.settings import configure

    if run.config_path.exists():
        raise UserError(
            f"{run.directory}: already holds a model; continue it with --resume or "
            "give another --output"
        )
    if not options.text:
        raise UserError("--text: give at least one file")
    values = {"objective": options.objective, "data": {"text": options.text}}
    return configure(PretrainingConfig, values, options.set, "pretrain")


def _fine_tuning(config, directory: Path) -> str:
    """The command that trains a reader on an encoder."""
    from qanet.models.pretrained import size_options

    return (
        "python train.py --preset bert-6 --train squad --dev squad --set "
        f"model.pretrained={directory} {size_options(config.model_dump())}"
    )
