"""Speed on an accelerator: training, prediction, and that of recurrent encoders.

    KERAS_BACKEND=jax python benchmarks/accelerator.py [--batches 32 128] \
        [--output speed.json] [--help]

For each batch size and precision it takes steps on random words and prints examples/s,
model GFLOP/s and the share of the rate at which the device multiplies two large
matrices of the same precision, at the backend's default settings, in the same run. It
computes on one device, with all dropout on, and needs no TensorFlow where the backend
is JAX. On a processor it runs too, for trying it out.

Steps are timed in groups, each queued as in training and then waited for; the figure is
the median of the groups. A training step is that of `qanet.training.distribution`, its
batch brought from the host's memory; a prediction is the model's compiled forward pass.

Most of the time goes into compilation. `compile_seconds` is that of the first call.
With JAX_COMPILATION_CACHE_DIR set, JAX keeps what it has compiled for further runs,
whose compile seconds are those of reading it. To split a run over several calls, give
each its own --parts, --batches, --precisions and --output. Rows are written to --output
as they are measured, so a run that is cut off leaves what it has.

`peak_gib` is the most device memory taken since the start, in a row that raised it (JAX
tells no other). Where an earlier measurement took more, and where the backend tells
nothing, it is null. What does not fit into the memory, or fails otherwise, is a row
with `error`.

The part `recurrent` measures the same model with a stack of bidirectional LSTMs in the
place of each stack of encoder blocks, as the paper does (table 3; 3 to 13 times slower
training and 4 to 9 times slower inference, says its abstract). `rnn-2` has two layers.
`times_qanet` is the ratio of its time to that of `qanet` at the same batch and
precision. The LSTMs are those of our recurrent readers, see
`qanet.layers.bidirectional_lstm.BidirectionalLSTM`.
"""

import argparse
import gc
import itertools
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
from machine import machine, processor
from recurrent import recurrent
from timing import (
    GROUPS,
    SIZES,
    Steps,
    first_seconds,
    matrix_rate,
    passes,
    random_batch,
    step_seconds,
)

from qanet.config import Config, load_preset
from qanet.datasets.plans import PlannedBatch
from qanet.files import write_text
from qanet.layers.encoder import EncoderStack
from qanet.memory import keep_blocks
from qanet.models.qanet import build_qanet
from qanet.models.registry import forward_flops
from qanet.run import POLICIES, precision
from qanet.training.distribution import make_distribution
from qanet.training.trainer import reading_learner

# Title, width and format; a negative width aligns to the left.
COLUMNS = {
    "model": ("model", -12, ""),
    "mode": ("mode", -10, ""),
    "precision": ("precision", -9, ""),
    "batch": ("batch", 5, "d"),
    "compile_seconds": ("compile s", 9, ".1f"),
    "milliseconds": ("ms", 9, ".2f"),
    "examples_per_second": ("examples/s", 10, ".1f"),
    "gflops": ("GFLOP/s", 9, ".1f"),
    "share": ("share", 6, ".1%"),
    "peak_gib": ("GiB", 6, ".2f"),
    "times_qanet": ("x qanet", 7, ".2f"),
}


class RandomBatches:
    """Makes the same random batch again and again, as a `BatchMaker` makes batches."""

    def __init__(self, batch: PlannedBatch):
        self._inputs, self._targets = random_batch(
            len(batch.items), batch.context_length, batch.question_length
        )

    def inputs(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """The inputs of the batch."""
        return self._inputs

    def targets(self, batch: PlannedBatch) -> dict[str, np.ndarray]:
        """The targets of the batch."""
        return self._targets


class Device:
    """The one device that is measured.

    Attributes:
        name: what it calls itself.
        is_accelerator: whether it is no processor.
    """

    def __init__(self):
        self._device = None
        if keras.backend.backend() == "jax":
            import jax

            self._device = jax.devices()[0]
            self.is_accelerator = self._device.platform != "cpu"
            self.name = self._device.device_kind
        else:
            import tensorflow as tf

            devices = tf.config.list_physical_devices("GPU")
            self.is_accelerator = bool(devices)
            if devices:
                details = tf.config.experimental.get_device_details(devices[0])
                self.name = details.get("device_name", devices[0].name)
        if not self.is_accelerator:
            self.name = processor()

    def peak_bytes(self) -> int | None:
        """The most memory that was taken since the start, where JAX tells it."""
        known = self._device and self._device.memory_stats()
        return (known or {}).get("peak_bytes_in_use")

    def matrix_rate(self, kind: str, seconds: float) -> float:
        """GFLOP/s of a large matrix product in a precision."""
        if self.is_accelerator:
            return matrix_rate(8192, kind, seconds, queued=8)
        return matrix_rate(1024, kind, seconds, queued=1)


class Benchmark:
    """Measures rows and keeps them.

    Args:
        options: the command line's.
        device: what is measured.
        setting: what stands beside the rows in the file.

    Attributes:
        rows: a row for each mode of a model, or with an error instead.
        has_failed: whether something failed for another reason than memory.
    """

    def __init__(self, options: argparse.Namespace, device: Device, setting: dict):
        self.options = options
        self.device = device
        self.setting = setting
        self.rows: list[dict] = []
        self.has_failed = False
        self._times: dict[tuple, float] = {}

    def measure(self, name: str, encoder: Callable, batch: int, kind: str) -> None:
        """Adds the rows of prediction and then of training, which takes more memory.

        The first that fails is the last.
        """
        row = {"model": name, "mode": None, "precision": kind, "batch": batch}
        gc.collect()  # What the model before held, also where it failed.
        try:
            for mode, measured in self._modes(encoder, batch, kind):
                row["mode"] = mode
                self._add(row | measured())
        except Exception as error:
            if not is_memory_failure(error):
                self.has_failed = True
                traceback.print_exc()
            (first, *_) = str(error).splitlines() or [""]
            self._add(row | {"error": f"{type(error).__name__}: {first}"})

    def _modes(self, encoder: Callable, batch: int, kind: str) -> Iterator[tuple]:
        """Yields each mode and the function that measures it."""
        config = configuration(self.options, batch, kind)
        length = self.options.length or config.data.buckets[-1]
        question = config.data.question_limit
        with precision(kind):
            model = build_qanet(config.model, SIZES, encoder)
        planned = PlannedBatch(np.arange(batch), length, question)
        maker = RandomBatches(planned)
        predict = passes(model, maker.inputs(planned))
        training = make_distribution(config.distribution).training(
            reading_learner(model, config), batch
        )

        def train(count):
            return training(maker, [planned] * count)

        flops = 0
        if encoder is EncoderStack:
            flops = batch * forward_flops(config.model, SIZES, length, question)
        yield "prediction", lambda: self._measured(planned, kind, predict, flops)
        # A training step computes the products three times: forward, and backward to
        # both factors.
        yield "training", lambda: self._measured(planned, kind, train, 3 * flops)

    def _measured(
        self, planned: PlannedBatch, kind: str, steps: Steps, flops: int
    ) -> dict:
        """The figures of steps of so many operations; 0 where nobody has counted."""
        seconds = self.options.seconds
        before = self.device.matrix_rate(kind, seconds / GROUPS)
        # Between the two readings nothing but the model takes memory.
        peak = self.device.peak_bytes()
        compilation = first_seconds(steps)
        step = step_seconds(steps, seconds)
        new_peak = self.device.peak_bytes()
        rate = (before + self.device.matrix_rate(kind, seconds / GROUPS)) / 2
        achieved = flops / step / 1e9
        has_risen = new_peak is not None and new_peak > peak
        return {
            "context_length": planned.context_length,
            "question_length": planned.question_length,
            "compile_seconds": round(compilation, 1),
            "milliseconds": round(1000 * step, 3),
            "examples_per_second": round(len(planned.items) / step, 2),
            "matrix_gflops": round(rate, 1),
            "gflops": round(achieved, 3) if flops else None,
            "share": round(achieved / rate, 4) if flops else None,
            "peak_gib": round(new_peak / 2**30, 3) if has_risen else None,
        }

    def _add(self, row: dict) -> None:
        if "error" not in row:
            key = row["mode"], row["precision"], row["batch"]
            if row["model"] == "qanet":
                self._times[key] = row["milliseconds"]
            elif key in self._times:
                ratio = row["milliseconds"] / self._times[key]
                row["times_qanet"] = round(ratio, 2)
        self.rows.append(row)
        cells = {
            name: format(row[name], form)
            for name, (_, _, form) in COLUMNS.items()
            if row.get(name) is not None
        }
        print(f"{aligned(cells)} {row.get('error', '')}".rstrip(), flush=True)
        if self.options.output:
            result = self.setting | {"rows": self.rows}
            write_text(self.options.output, json.dumps(result, indent=1) + "\n")


def aligned(cells: dict[str, str]) -> str:
    """A line of the table."""
    return " ".join(
        f"{cells.get(name, ''):{'<' if width < 0 else '>'}{abs(width)}s}"
        for name, (_, width, _) in COLUMNS.items()
    )


def is_memory_failure(error: BaseException | None) -> bool:
    """Whether an exception, or one that led to it, tells that memory ran out."""
    signs = "resourceexhausted", "outofmemory", "memoryerror"
    while error is not None:
        text = f"{type(error).__name__} {error}".lower()
        text = text.replace("_", "").replace(" ", "")
        if any(sign in text for sign in signs):
            return True
        error = error.__cause__ or error.__context__
    return False


def configuration(options: argparse.Namespace, batch: int, kind: str) -> Config:
    """The preset with the command line's changes, at a batch size and a precision."""
    own = (
        f"training.batch_size={batch}",
        f"training.precision={kind}",
        "distribution.strategy=none",
    )
    return load_preset(options.preset, [*options.set, *own])


def plan(options: argparse.Namespace) -> list[tuple]:
    """The arguments of `Benchmark.measure`, in turn."""
    kinds = options.precisions
    cases = []
    if "qanet" in options.parts:
        cases += itertools.product(options.batches, kinds)
    if "recurrent" in options.parts:
        batch = options.recurrent_batch
        cases += [(batch, kind) for kind in kinds if (batch, kind) not in cases]
    result = [("qanet", EncoderStack, *case) for case in cases]
    if "recurrent" in options.parts:
        result += [
            (f"rnn-{depth}", partial(recurrent, depth), batch, kind)
            for depth in options.layers
            for kind in kinds
        ]
    return result


def main() -> None:
    """Parses the options and measures. The exit code is 1 where a row failed for
    another reason than memory."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", default="qanet")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--batches", type=int, nargs="+", default=[32, 64, 128, 256])
    parser.add_argument(
        "--precisions", nargs="+", choices=POLICIES, default=["bfloat16", "float32"]
    )
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=("qanet", "recurrent"),
        default=["qanet", "recurrent"],
    )
    parser.add_argument(
        "--length", type=int, help="tokens of a context (default: the last bucket)"
    )
    parser.add_argument("--recurrent-batch", type=int, default=32)
    parser.add_argument(
        "--layers", type=int, nargs="+", default=[1, 3], help="of a recurrent stack"
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="a measurement")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()

    keep_blocks()
    device = Device()
    setting = {
        "device": device.name,
        "backend": keras.backend.backend(),
        **machine(),
        "compilation_cache": "JAX_COMPILATION_CACHE_DIR" in os.environ,
    }
    names = ("preset", "set", "precisions", "parts", "layers", "seconds")
    setting |= {name: getattr(options, name) for name in names}
    print(f"{setting['backend']} on {device.name}, preset {options.preset}")
    titles = {name: title for name, (title, _, _) in COLUMNS.items()}
    print(aligned(titles), flush=True)
    benchmark = Benchmark(options, device, setting)
    for case in plan(options):
        benchmark.measure(*case)
    sys.exit(int(benchmark.has_failed))


if __name__ == "__main__":
    main()
