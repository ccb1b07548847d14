"""`python -m qanet export`: writes a trained reader for use outside Python."""

import argparse
import tempfile
from pathlib import Path

from qanet.errors import UserError

FORMATS = {
    "saved_model": "TensorFlow SavedModel, strings in and answers out",
    "litert": "LiteRT files for devices, in single precision and with 8-bit weights",
    "onnx": "ONNX file (needs the extra [onnx])",
}


def add_parser(commands) -> None:
    """Adds the command."""
    formats = "; ".join(f"{name}: {text}" for name, text in FORMATS.items())
    parser = commands.add_parser(
        "export",
        help="write a trained reader as SavedModel, LiteRT or ONNX",
        description="Writes a trained reader in a form that needs nothing of this "
        f"package. {formats}.",
        epilog="example: python -m qanet export --model runs/qanet-tiny "
        "--format saved_model --output reader/1",
    )
    parser.add_argument("--model", type=Path, required=True, metavar="RUN_DIR")
    parser.add_argument("--format", choices=FORMATS, default="saved_model")
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="directory to make"
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    import keras

    from qanet.reader import Reader

    if options.output.exists():
        raise UserError(f"--output {options.output}: is there already; give a new one")
    if keras.backend.backend() != "tensorflow":
        raise UserError(
            f"export needs the TensorFlow backend, not {keras.backend.backend()}; "
            "set KERAS_BACKEND=tensorflow"
        )
    # Whatever it was trained in: the runtimes of devices have no bfloat16.
    reader = Reader.load(options.model, precision="float32")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    # Whole or not at all: made beside its place, then renamed.
    with tempfile.TemporaryDirectory(dir=options.output.parent) as temporary:
        made = Path(temporary) / "export"
        made.mkdir()
        _exporter(options.format)(reader, made)
        made.rename(options.output)
    size = sum(f.stat().st_size for f in options.output.rglob("*") if f.is_file())
    print(f"written to {options.output}, {size / 2**20:.1f} MiB")


def _exporter(name: str):
    from qanet.serving import portable, saved_model

    return {
        "saved_model": saved_model.export_saved_model,
        "litert": portable.export_litert,
        "onnx": portable.export_onnx,
    }[name]
