"""What computed: the part of a benchmark's result that is told of the machine."""

import contextlib
import platform
import re
from importlib import metadata
from pathlib import Path

from qanet.cores import own_cores

LIBRARIES = ("keras", "numpy", "tensorflow", "jax", "jaxlib", "onnxruntime", "torch")


def machine() -> dict:
    """The processor, the cores that may be used of it, and the libraries."""
    return {"processor": processor(), "cores": own_cores(), "versions": versions()}


def processor() -> str:
    """Its name; where Linux tells it, with family and model.

    Virtual machines give several processors one name.
    """
    with contextlib.suppress(OSError):
        told = Path("/proc/cpuinfo").read_text("utf-8")
        lines = re.findall(r"^(model name|cpu family|model)\s*: (.+)$", told, re.M)
        found = dict(reversed(lines))
        if len(found) == 3:
            return "{model name}, family {cpu family}, model {model}".format(**found)
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Versions of what may have computed."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
