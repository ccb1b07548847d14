"""The reader that is part of the package, for who gives no other."""

from pathlib import Path

from qanet.errors import UserError

# An ONNX export with its model card and checksums; docs/export.md tells how to make it.
SHIPPED = Path(__file__).parent / "readers" / "qanet-squad"


def shipped_reader() -> Path:
    """The directory of that reader; raises `UserError` where it is not installed."""
    if not SHIPPED.is_dir():
        raise UserError(
            f"{SHIPPED}: no reader is part of this installation; give the directory of "
            "another one, on the command line with --model"
        )
    return SHIPPED
