"""Speed of the model on this machine, as a share of its matrix-product rate.

    python benchmarks/model.py [--preset qanet] [--output benchmarks/results/model.json]

For each shape it times training steps and predictions on random words and prints
examples/s, GFLOP/s and the share of the rate at which the machine multiplies two
2048 x 2048 single-precision matrices in the same run. The machine may be shared:
every figure is the median of several runs, and the matrix rate is measured between
them.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from types import SimpleNamespace

import keras
import numpy as np
from timing import SIZES, matrix_rate, median_seconds, random_batch

from qanet.config import Config, load_preset
from qanet.datasets.plans import PlannedBatch
from qanet.files import write_text
from qanet.memory import keep_blocks
from qanet.models.registry import build_model, forward_flops
from qanet.training.distribution import make_distribution
from qanet.training.trainer import reading_learner

SHAPES = ((8, 400), (32, 160), (1, 160))
QUESTION_LENGTH = 24
MATRIX = 2048


def measure(config: Config, batch: int, length: int, seconds: float) -> list[dict]:
    """Training and inference at one shape."""
    model = build_model(config.model, SIZES)
    inputs, targets = random_batch(batch, length, QUESTION_LENGTH)
    maker = SimpleNamespace(inputs=lambda batch: inputs, targets=lambda batch: targets)
    planned = PlannedBatch(np.arange(batch), length, QUESTION_LENGTH)
    training = make_distribution(config.distribution).training(
        reading_learner(model, config)
    )

    def step():
        ((loss, _),) = training(maker, [planned])
        return float(loss)

    flops = batch * forward_flops(config.model, SIZES, length, QUESTION_LENGTH)
    modes = {
        # A training step computes the products three times: forward, and backward to
        # both factors.
        "training": (step, 3 * flops),
        "inference": (lambda: model.predict_on_batch(inputs), flops),
    }
    rows = []
    for mode, (call, operations) in modes.items():
        begin = time.perf_counter()
        call()
        compilation = time.perf_counter() - begin
        before = matrix_rate(MATRIX)
        duration = median_seconds(call, seconds)
        rate = (before + matrix_rate(MATRIX)) / 2
        rows.append(
            {
                "mode": mode,
                "batch": batch,
                "length": length,
                "compile_seconds": round(compilation, 1),
                "milliseconds": round(1000 * duration, 1),
                "examples_per_second": round(batch / duration, 2),
                "gflops": round(operations / duration / 1e9, 1),
                "matrix_gflops": round(rate, 1),
                "share": round(operations / duration / 1e9 / rate, 3),
            }
        )
    return rows


def main() -> None:
    """Parses the options, measures, prints the table and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", default="qanet")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seconds", type=float, default=15.0, help="a measurement")
    parser.add_argument(
        "--output", type=Path, default=Path("benchmarks/results/model.json")
    )
    options = parser.parse_args()
    config = load_preset(options.preset, options.set)
    # As `train.py` does.
    keep_blocks()
    rows = []
    print("mode       batch x length  compile s      ms  examples/s  GFLOP/s   share")
    for batch, length in SHAPES:
        for row in measure(config, batch, length, options.seconds):
            rows.append(row)
            print(
                f"{row['mode']:10s} {batch:5d} x {length:<6d} "
                f"{row['compile_seconds']:10.1f} {row['milliseconds']:7.1f} "
                f"{row['examples_per_second']:11.2f} {row['gflops']:8.1f} "
                f"{row['share']:7.1%}",
                flush=True,
            )
    result = {
        "preset": options.preset,
        "set": options.set,
        "backend": keras.backend.backend(),
        "keras": keras.__version__,
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "rows": rows,
    }
    write_text(options.output, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
