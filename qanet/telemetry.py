"""Keeps libraries from telling others what is done with them."""

import os


def refuse_telemetry() -> None:
    """To be called before ONNX Runtime is imported, which asks the environment then."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
