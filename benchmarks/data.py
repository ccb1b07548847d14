"""Time and memory of preprocessing, and speed of the input pipeline alone.

    python benchmarks/data.py --train train-v1.1.json --dev dev-v1.1.json \
        --vectors vectors.txt.gz [--output benchmarks/results/data.json]

Preprocessing is what happens between the command and the first step: reading and
checking both files, tokenising, reading the vectors, building the vocabulary. It runs
twice, each time in a process of its own: with an empty cache and with a full one.
"""

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from machine import machine

from qanet.config import Config, load_preset
from qanet.files import write_text


def configuration(options: argparse.Namespace) -> Config:
    """The preset on the given files."""
    files = {
        "data.train": options.train,
        "data.dev": options.dev,
        "vocabulary.vectors": options.vectors,
    }
    return load_preset(
        options.preset, [f"{key}={json.dumps(file)}" for key, file in files.items()]
    )


def preprocess(options: argparse.Namespace, cache: Path, result) -> None:
    """Does what a training does before it builds the model."""
    from qanet.datasets.training_files import read_training_data

    config = configuration(options)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    data = read_training_data(config, cache)
    data.vocabulary.table(data.train.words)
    seconds = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result.update(
        seconds=round(seconds, 2),
        peak_mib=round(after / 1024),
        of_which_imports_mib=round(before / 1024),
        questions=len(data.train) + len(data.dev),
    )


def pipeline(options: argparse.Namespace, cache: Path, result) -> None:
    """Draws batches as fast as they come."""
    from qanet.datasets.batches import BatchMaker, training_dataset
    from qanet.datasets.plans import plan_training
    from qanet.datasets.training_files import read_training_data
    from qanet.datasets.windows import training_windows

    config = configuration(options)
    data = read_training_data(config, cache)
    train = data.train
    windows = training_windows(train, config.data, seed=0)
    maker = BatchMaker(train, data.vocabulary.table(train.words), windows)
    size, steps = config.training.batch_size, options.steps
    begin = time.perf_counter()
    plan = plan_training(windows, data.sources, config.data, size, steps, seed=0)
    planned = time.perf_counter() - begin
    dataset = training_dataset(maker, plan, size)
    iterator = iter(dataset)
    next(iterator)
    begin = time.perf_counter()
    for _ in range(steps - 1):
        next(iterator)
    seconds = time.perf_counter() - begin
    result.update(
        examples_per_second=round((steps - 1) * size / seconds),
        plan_seconds=round(planned, 2),
        steps=steps,
    )


def in_own_process(function, *arguments) -> dict:
    """Runs a function in a fresh process, so that memory is its own."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        result = manager.dict()
        process = context.Process(target=function, args=(*arguments, result))
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(process.exitcode)
        return dict(result)


def main() -> None:
    """Parses the options, measures, prints and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--train", required=True)
    parser.add_argument("--dev", required=True)
    parser.add_argument("--vectors", required=True)
    parser.add_argument("--preset", default="qanet")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    result = {"preset": options.preset, **machine()}
    with tempfile.TemporaryDirectory() as directory:
        cache = Path(directory)
        for name, function in (
            ("first start", preprocess),
            ("second start", preprocess),
            ("input pipeline", pipeline),
        ):
            result[name] = in_own_process(function, options, cache)
            print(f"{name}: {result[name]}", flush=True)
    if options.output:
        write_text(options.output, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
