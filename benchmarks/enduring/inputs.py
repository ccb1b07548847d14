"""Ten thousand files, command lines and requests: whether any is met by a traceback.

Each is drawn from the target's name, the seed and its number. One is tried again, its
files kept, with

    PYTHONPATH=.:benchmarks python -m enduring.inputs TARGET SEED NUMBER

What is fine: a normal end; one line of error and exit code 2; a status below 500. What
is not: any other exception, more than 20 seconds, the end of the process.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from enduring.asked import requests, sockets
from enduring.command_lines import command_lines
from enduring.file_inputs import (
    data_files,
    exports,
    loaded_runs,
    packed_data_sets,
    question_files,
    run_directories,
    vectors_files,
)
from enduring.findings import Finding
from enduring.watching import Target, try_inputs, try_one

# What tries the inputs, and how many there are.
TARGETS: dict[str, tuple[Target, int]] = {
    "data files": (data_files, 1800),
    "vectors files": (vectors_files, 1200),
    "packed data sets": (packed_data_sets, 1000),
    "run directories": (run_directories, 1000),
    "loaded runs": (loaded_runs, 60),
    "exports": (exports, 1200),
    "question files": (question_files, 800),
    "command lines": (command_lines, 1300),
    "requests": (requests, 1440),
    "sockets": (sockets, 200),
}


def run(seed: int) -> list[Finding]:
    """Makes the files that inputs are made of, and tries the inputs of all targets."""
    with tempfile.TemporaryDirectory() as base:
        _make_base(Path(base))
        return [tried(name, Path(base), seed) for name in TARGETS]


def tried(name: str, base: Path, seed: int) -> Finding:
    """What the inputs of one target come to."""
    target, count = TARGETS[name]
    wrong = try_inputs(name, target, base, seed, range(count))
    return Finding(name, count, wrong)


def _make_base(directory: Path) -> None:
    """In a process of its own, for it needs what training does."""
    subprocess.run(
        [sys.executable, "-m", "enduring.base", str(directory)],
        check=True,
        capture_output=True,
        env=os.environ
        | {
            "KERAS_BACKEND": "tensorflow",
            "CUDA_VISIBLE_DEVICES": "-1",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
    )


def main() -> None:
    """Tries one input again."""
    name, seed, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory() as base:
        _make_base(Path(base))
        try_one(name, TARGETS[name][0], Path(base), seed, number)


if __name__ == "__main__":
    main()
