"""Compares readers: scores, speed, size, and their learning curves.

    python benchmarks/readers.py speeds --data dev-v1.1.json \
        --output benchmarks/results/readers runs/short/qanet-small runs/short/bidaf ...
    python benchmarks/readers.py scores --data dev-v1.1.json \
        --adversarial addsent.json addonesent.json \
        --output benchmarks/results/readers runs/qanet-small runs/bidaf ...

`speeds` tells of each run how many examples a second it trains, how many questions a
second it reads in batches and how long a lone question takes, on the questions of
`--data`, in turns over the runs, medians of several. Scores do not matter to it, so
runs of a few steps will do. `scores` answers the whole of the data and of the
adversarial sets.

A reader is told by the name of its run directory. What is measured is added to
`readers.json` in the output directory, so runs may be measured one after the other, as
they end. The table of all that is there is printed in Markdown; `readers.png` has the
F1 of each reader over the minutes that its examples take at the rate of `speeds` (extra
`plot`).
"""

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from adversarial import adversarial_scores
from curve import read_history
from matplotlib.figure import Figure

from qanet.config import ORIGINAL
from qanet.datasets.batches import BatchMaker
from qanet.datasets.features import build_features
from qanet.datasets.plans import plan_training
from qanet.datasets.squad import Example, read_squad
from qanet.datasets.windows import training_windows
from qanet.evaluation.evaluator import evaluate
from qanet.files import write_file, write_text
from qanet.memory import keep_blocks
from qanet.reader import Reader
from qanet.run import Run, TrainedModel
from qanet.training.distribution import make_distribution
from qanet.training.trainer import reading_learner

ROUNDS = 5
# Steps of training in a round, in which all lengths of batches should occur.
STEPS = 40
# Questions that are read in batches in a round, and one by one. Of few together, those
# that fill no batch take a large part of the time: 40 % of it of 512.
TOGETHER, ALONE = 2048, 20


def scores_of(reader: Reader, data: list[Example], adversarial: dict) -> dict:
    """Exact match and F1 on the data, called `dev`, and on each adversarial set."""
    split = reader.vocabulary.tokens
    own = evaluate(reader, data, build_features(data, split), progress="dev")
    scores = {"dev": own.metrics}
    for name, examples in adversarial.items():
        features = build_features(examples, split)
        found = evaluate(reader, examples, features, progress=name)
        scores[name] = adversarial_scores(examples, found.predictions)
    return {
        name: {metric: found[metric] for metric in ("exact_match", "f1")}
        for name, found in scores.items()
    }


def trained_parameters(model) -> int:
    """Numbers that were trained."""
    return sum(math.prod(weight.shape) for weight in model.trainable_variables)


def training_call(model: TrainedModel, data: list[Example]) -> Callable[[], int]:
    """Takes steps of training and tells how many examples they had.

    Each call has the same batches, those with which a training on the data alone
    begins, without augmented sets and without a teacher.
    """
    config, encoder = model.config, model.vocabulary
    features = build_features(data, encoder.tokens)
    windows = training_windows(features, config.data, config.training.seed)
    table = encoder.table(features.words)
    maker = BatchMaker(features, table, windows, config.data.no_answer)
    plan = plan_training(
        windows,
        {ORIGINAL: len(data)},
        config.data.model_copy(update={"mix": {ORIGINAL: 1.0}}),
        config.training.batch_size,
        STEPS,
        config.training.seed,
    )
    distribution = make_distribution(config.distribution)
    learner = reading_learner(model.model, config)
    training = distribution.training(learner, config.training.batch_size)

    def train():
        for loss, _ in training(maker, plan):
            last = loss
        float(last)
        return sum(len(batch.items) for batch in plan)

    return train


def speeds_of(models: dict[str, TrainedModel], data: list[Example]) -> dict:
    """Examples/s of training, questions/s in batches, and ms of a lone question."""
    together = data[:: max(1, len(data) // TOGETHER)][:TOGETHER]
    alone = together[:ALONE]
    calls = {}
    for name, model in models.items():
        batches, lone = Reader.of(model), Reader.of(model, as_they_come=True)
        features = build_features(together, batches.vocabulary.tokens)

        def read(reader=batches, features=features):
            evaluate(reader, together, features)
            return len(together)

        def ask(reader=lone):
            for example in alone:
                reader.answer(example.question, example.context)
            return len(alone)

        calls[name] = {"train": training_call(model, data), "read": read, "ask": ask}
        for call in calls[name].values():
            call()  # It compiles.
    rates = {name: {kind: [] for kind in kinds} for name, kinds in calls.items()}
    for _ in range(ROUNDS):
        for name, kinds in calls.items():
            for kind, call in kinds.items():
                rates[name][kind].append(rate_of(call))
    return {
        name: {
            "examples_per_second": statistics.median(kinds["train"]),
            "questions_per_second": statistics.median(kinds["read"]),
            "latency_ms": 1000 / statistics.median(kinds["ask"]),
        }
        for name, kinds in rates.items()
    }


def rate_of(call: Callable[[], int]) -> float:
    """What a call does in a second, where it tells how much it did."""
    begin = time.perf_counter()
    done = call()
    return done / (time.perf_counter() - begin)


def table(readers: dict[str, dict]) -> str:
    """All figures in Markdown; what is not measured yet is left empty."""
    sets = {name: None for reader in readers.values() for name in reader["scores"]}
    speeds = {
        "parameters": "{parameters:,}",
        "training, examples/s": "{examples_per_second:.0f}",
        "reading, questions/s": "{questions_per_second:.0f}",
        "a lone question, ms": "{latency_ms:.0f}",
    }
    lines = [
        f"| reader | {' | '.join([*speeds, 'examples', *sets])} |",
        f"| --- |{' --- |' * (len(speeds) + 1 + len(sets))}",
    ]
    for name, reader in readers.items():
        cells = [
            form.format(**reader["speeds"]) if reader["speeds"] else ""
            for form in speeds.values()
        ]
        history, scores = reader["history"], reader["scores"]
        cells.append(f"{history['examples'][-1]:,.0f}" if history else "")
        pair = "{exact_match:.1f} / {f1:.1f}"
        cells += [pair.format(**scores[key]) if key in scores else "" for key in sets]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(readers: dict[str, dict]) -> Figure:
    """F1 of each reader over its minutes of training, at the rate of `speeds`."""
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    for name, reader in readers.items():
        if reader["history"] and reader["speeds"]:
            rate = 60 * reader["speeds"]["examples_per_second"]
            minutes = [examples / rate for examples in reader["history"]["examples"]]
            axes.plot(minutes, reader["history"]["f1"], marker=".", label=name)
    axes.set_xlabel("minutes of training")
    axes.set_ylabel("F1 on dev (%)")
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    if axes.lines:
        axes.legend(loc="lower right")
    return figure


def store(readers: dict[str, dict], directory: Path) -> None:
    """Writes the figures and the picture, and prints the table."""
    write_text(directory / "readers.json", json.dumps(readers, indent=1) + "\n")
    figure = draw(readers)
    write_file(
        directory / "readers.png",
        lambda file: figure.savefig(file, format="png", dpi=120),
    )
    print(table(readers))


def main() -> None:
    """Parses the options, measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=("speeds", "scores"))
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--data", required=True, metavar="FILE")
    parser.add_argument("--adversarial", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    if len({run.name for run in options.runs}) < len(options.runs):
        parser.error("two runs have the same name, by which they are told apart")
    if options.adversarial and options.part == "speeds":
        parser.error("--adversarial goes with scores")
    # As `train.py` does.
    keep_blocks()
    data = read_squad(options.data).examples
    adversarial = {
        Path(path).stem: read_squad(path).examples for path in options.adversarial
    }
    models = {run.name: Run(run).load() for run in options.runs}
    stored = options.output / "readers.json"
    readers = json.loads(stored.read_bytes()) if stored.exists() else {}
    for name in models:
        readers.setdefault(name, {"speeds": {}, "scores": {}, "history": {}})
    if options.part == "speeds":
        for name, speeds in speeds_of(models, data).items():
            parameters = trained_parameters(models[name].model)
            readers[name]["speeds"] = {"parameters": parameters, **speeds}
    else:
        histories = [read_history(run / "history.csv") for run in options.runs]
        for (name, model), history in zip(models.items(), histories, strict=True):
            readers[name]["scores"] = scores_of(Reader.of(model), data, adversarial)
            readers[name]["history"] = history
    store(readers, options.output)


if __name__ == "__main__":
    main()
