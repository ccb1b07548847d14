"""`python -m qanet export`: writes a trained reader for use outside Python."""

import argparse
import contextlib
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from qanet.backend import load_keras
from qanet.commands.options import check_directory, check_reader, path_of
from qanet.console import say
from qanet.errors import UserError, first_line, refuse_existing

FORMATS = {
    "saved_model": "TensorFlow SavedModel, strings in and answers out",
    "litert": "LiteRT files for devices, in single precision and with 8-bit weights",
    "onnx": "directory that --model takes, read without TensorFlow and Keras (making "
    "it needs the extra [onnx])",
}


def add_parser(commands) -> None:
    """Adds the command."""
    formats = "; ".join(f"{name}: {text}" for name, text in FORMATS.items())
    parser = commands.add_parser(
        "export",
        help="write a trained reader as SavedModel, LiteRT or ONNX",
        description="Writes a trained reader in another form, with a model card "
        f"(README.md) and checksums. {formats}.",
        epilog="example:\n"
        "  python -m qanet export --model runs/qanet-tiny --format saved_model \\\n"
        "      --output reader/1",
    )
    parser.add_argument(
        "--model",
        type=path_of,
        required=True,
        metavar="RUN_DIR",
        help="directory of a training",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="saved_model",
        help="what is written, see above (default: %(default)s)",
    )
    parser.add_argument(
        "--output", type=path_of, required=True, metavar="DIR", help="directory to make"
    )
    parser.add_argument(
        "--word-bits",
        type=int,
        choices=(16, 8, 4),
        default=16,
        help="bits of each number of the table of words, in ONNX; 8 and 4 also store "
        "QANet's weights in 16 bits (default: %(default)s)",
    )
    parser.add_argument(
        "--card",
        type=path_of,
        metavar="FILE.yaml",
        help="what the model card is to state that the run does not know, such as the "
        "licence and the hardware; docs/export.md lists it",
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    refuse_existing(options.output)
    check_directory(options.output)
    check_reader(options.model)

    from qanet.export.card import model_card, read_facts
    from qanet.onnx_reader import is_export
    from qanet.run import Run

    if is_export(options.model):
        raise UserError(
            f"{options.model}: is an export; give the run that it was made from"
        )

    run = Run(options.model)
    card = model_card(run, read_facts(options.card))
    _check(options, run.load_config().model)
    trained = _load(run)
    _write(options, trained, card)
    size = sum(f.stat().st_size for f in options.output.rglob("*") if f.is_file())
    say(f"written to {options.output}, {size / 2**20:.1f} MiB")


def _check(options: argparse.Namespace, settings) -> None:
    """Refuses what this reader cannot be written as."""
    from qanet.models.registry import MODELS, contextual_of

    reads_words = MODELS[settings.name].text == "words"
    if options.format == "saved_model" and not reads_words:
        raise UserError(
            f"--format saved_model: {settings.name} reads word pieces, which "
            "TensorFlow cannot make of strings; give --format onnx or litert"
        )
    if options.word_bits != 16 and not (options.format == "onnx" and reads_words):
        raise UserError(
            f"--word-bits {options.word_bits}: is for --format onnx of readers of "
            "words; leave it out"
        )
    if contextual_of(settings):
        raise UserError(
            f"--model {options.model}: reads the vectors of a language model "
            "(model.contextual), which no export holds"
        )


def _load(run):
    """The reader as it is written: in float32, made as on a machine without a GPU."""
    from qanet.export.paths import without_paths

    load_keras()

    import keras

    if keras.backend.backend() != "tensorflow":
        raise UserError(
            f"export needs the TensorFlow backend, not {keras.backend.backend()}; "
            "set KERAS_BACKEND=tensorflow"
        )
    import tensorflow as tf

    # With a GPU at hand small tables would be read by matrix products, which are slow
    # where an export is used.
    with contextlib.suppress(RuntimeError):  # Too late: it is in use already.
        tf.config.set_visible_devices([], "GPU")
    # Whatever it was trained in: the runtimes of devices have no bfloat16.
    trained = run.load(precision="float32")
    return replace(trained, config=without_paths(trained.config))


def _write(options: argparse.Namespace, trained, card: str) -> None:
    """Whole or not at all: made beside its place, then renamed."""
    import tensorflow as tf

    from qanet.checksums import write_checksums
    from qanet.export.card import CARD_FILE
    from qanet.files import write_text

    try:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=options.output.parent) as temporary:
            made = Path(temporary) / "export"
            made.mkdir()
            _exporter(options)(trained, made)
            write_text(made / CARD_FILE, card)
            write_checksums(made)
            made.rename(options.output)
    except (OSError, tf.errors.OpError) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise UserError(
            f"--output {options.output}: cannot be written: {reason}"
        ) from error


def _exporter(options: argparse.Namespace):
    from qanet.export import portable, saved_model

    return {
        "saved_model": saved_model.export_saved_model,
        "litert": portable.export_litert,
        "onnx": partial(portable.export_onnx, bits=options.word_bits),
    }[options.format]
