"""Time from a cold start to a score on dev, all included (DAWNBench's measure).

    python benchmarks/time_to_f1.py --f1 75 -- --preset qanet --packed squad.npz

What follows `--` goes to `train.py`. The clock starts before its process does, so
start-up, reading, compilation and evaluations all count. It stops when an evaluation of
the averaged weights on the whole of dev has reached the score; then the training is
stopped. No cache is used, neither JAX' of compiled programs nor ours of tokens and
vectors. Prints one line of JSON; --output gets it too, with the configuration and all
evaluations. Exit code 1 where the training ends before.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import machine

from qanet.files import write_text

ROOT = Path(__file__).parents[1]
UNSHOWN = ("history", "config")


def rows_of(history: Path) -> list[dict[str, str]]:
    """The evaluations so far."""
    try:
        with history.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        return []


def measure(arguments: list[str], f1: float, run: Path) -> dict:
    """Trains until an evaluation reaches `f1`, or to the end.

    Args:
        arguments: those of `train.py`, but for `--output`.
        f1: the score to reach.
        run: the run directory.

    Returns:
        The best evaluation's figures, `reached`, the `seconds` it took, and what
        computed it how.
    """
    # A score on a part of dev is no score.
    command = [sys.executable, str(ROOT / "train.py"), *arguments, "--output", str(run)]
    command += ["--set", "training.evaluation_questions=0"]
    environment = dict(os.environ)
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    environment["XDG_CACHE_HOME"] = str(run.parent / "cache")
    begin = time.monotonic()
    with subprocess.Popen(command, env=environment) as process:
        ended = False
        while not ended:
            ended = process.poll() is not None
            rows = rows_of(run / "history.csv")
            seconds = time.monotonic() - begin
            if rows and float(rows[-1]["f1"]) >= f1:
                process.kill()
                break
            time.sleep(0.1)
    if not rows:
        sys.exit(process.returncode or 1)
    best = max(rows, key=lambda row: float(row["f1"]))
    return {
        "target": f1,
        "reached": float(best["f1"]) >= f1,
        "seconds": round(seconds, 1),
        "step": int(best["step"]),
        "exact_match": float(best["exact_match"]),
        "f1": float(best["f1"]),
        "arguments": arguments,
        "backend": os.environ.get("KERAS_BACKEND", "tensorflow"),
        **machine(),
        "history": rows,
        "config": json.loads((run / "config.json").read_bytes()),
    }


def main() -> None:
    """Parses the options, measures, prints and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--f1", type=float, default=75.0)
    parser.add_argument("--output", type=Path)
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="of train.py")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        result = measure(options.arguments, options.f1, Path(directory) / "run")
    if options.output:
        write_text(options.output, json.dumps(result, indent=1) + "\n")
    shown = {key: value for key, value in result.items() if key not in UNSHOWN}
    print(json.dumps(shown))
    sys.exit(not result["reached"])


if __name__ == "__main__":
    main()
