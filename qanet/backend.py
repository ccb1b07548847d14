"""Imports Keras and TensorFlow without what they say of themselves."""

import contextlib
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from qanet.console import is_verbose
from qanet.errors import UserError, first_line

# What TensorFlow 2.21 says while it is imported, whatever TF_CPP_MIN_LOG_LEVEL is:
# remarks of its C++ libraries, and that these begin.
REMARKS = re.compile(rb"I\d{4} |WARNING: All log messages before absl::InitializeLog")
# An error where there is a driver, and no news where there is none.
NO_GPU = re.compile(rb"E\d{4} .*failed call to cuInit")
# One of them is there where a driver of NVIDIA's is, the second on WSL.
DRIVERS = (Path("/proc/driver/nvidia"), Path("/dev/dxg"))

# Standard error is one for all threads.
_holding_back = threading.Lock()


def load_keras() -> None:
    """Imports Keras and what it computes with, silently.

    Raises:
        UserError: one of them is not installed or does not work.
    """
    with _holding_back:
        if sys.modules.get("keras"):
            return
        try:
            with _remarks_held_back():
                import keras

                if keras.backend.backend() == "tensorflow":
                    _find_devices()
        except (ImportError, ValueError) as error:
            name = os.environ.get("KERAS_BACKEND")
            raise UserError(
                f"{f'KERAS_BACKEND={name}: ' if name else ''}Keras cannot be imported "
                f"({first_line(error)}); install keras and tensorflow, or set "
                "KERAS_BACKEND to tensorflow or jax, whichever is there"
            ) from error


def load_tensorflow() -> None:
    """Imports TensorFlow silently, for who needs it without Keras.

    Raises:
        ImportError: it is not installed.
    """
    with _holding_back:
        if not sys.modules.get("tensorflow"):
            with _remarks_held_back():
                _find_devices()


def set_seed(seed: int) -> None:
    """Seeds Python, NumPy and Keras; silently, like `load_keras`.

    On other backends too Keras imports TensorFlow for this where it is installed.
    """
    with _holding_back, _remarks_held_back():
        import keras

        keras.utils.set_random_seed(seed)


def _find_devices() -> None:
    """Lets TensorFlow look for GPUs now: it logs remarks about them too."""
    import tensorflow as tf

    tf.config.list_physical_devices()


@contextlib.contextmanager
def _remarks_held_back() -> Iterator[None]:
    """Within this context standard error waits; then it is shown without remarks.

    The file itself waits, since C++ does not write through Python. All of it is shown
    where the context is left by an error; nothing waits where everything is wanted.
    """
    waiting = _waiting_file()
    if waiting is None:
        yield
        return
    sys.stderr.flush()
    shown = os.dup(2)
    with waiting as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            failed = isinstance(sys.exception(), Exception)
            sys.stderr.flush()
            os.dup2(shown, 2)
            os.close(shown)
            held.seek(0)
            # Nor is a full disk the fault of what is imported.
            with contextlib.suppress(OSError):
                for line in held:
                    if failed or not _is_remark(line):
                        os.write(2, line)


def _waiting_file() -> IO[bytes] | None:
    """Where standard error waits; `None` where all of it is shown at once."""
    if is_verbose() or sys.stderr is None:
        return None
    try:
        return tempfile.TemporaryFile()
    except OSError:
        # There is no place that can be written.
        return None


def _is_remark(line: bytes) -> bool:
    """Whether a line is of those that TensorFlow begins with on any machine."""
    if NO_GPU.match(line):
        return not any(driver.exists() for driver in DRIVERS)
    return REMARKS.match(line) is not None
