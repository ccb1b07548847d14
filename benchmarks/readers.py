"""Compares trained readers: scores, speed, size, and their learning curves.

    python benchmarks/readers.py --data dev-v1.1.json \
        --adversarial addsent.json addonesent.json \
        --output benchmarks/results/readers runs/qanet-small runs/bidaf ...

For each run it answers the whole of the data and of the adversarial sets, and measures
how many questions a second are read in batches and how long a lone question takes, in
turns over the readers, medians of several. Prints a table in Markdown; `readers.json`
in the output directory has every figure, `readers.png` F1 over the minutes of training
(extra `plot`).
"""

import argparse
import json
import math
import statistics
import time
from pathlib import Path

from adversarial import adversarial_scores
from curve import read_history
from matplotlib.figure import Figure

from qanet.console import load_keras
from qanet.datasets.features import build_features
from qanet.datasets.squad import Example, read_squad
from qanet.evaluation.evaluator import evaluate
from qanet.files import write_file, write_text
from qanet.reader import Reader
from qanet.run import Run, TrainedModel

ROUNDS = 5
# Questions that are read in batches in a round, and one by one.
TOGETHER, ALONE = 512, 20


def trained_parameters(model) -> int:
    """Numbers that were trained."""
    return sum(math.prod(weight.shape) for weight in model.trainable_variables)


def scores_of(reader: Reader, data: list[Example], adversarial: dict) -> dict:
    """Exact match and F1 on the data and on each adversarial set."""
    split = reader.vocabulary.tokens
    result = evaluate(reader, data, build_features(data, split), progress="dev")
    scores = {"exact_match": result.metrics["exact_match"], "f1": result.metrics["f1"]}
    for name, examples in adversarial.items():
        features = build_features(examples, split)
        found = evaluate(reader, examples, features, progress=name)
        worst = adversarial_scores(examples, found.predictions)
        scores[name] = {"exact_match": worst["exact_match"], "f1": worst["f1"]}
    return scores


def speeds_of(models: dict[str, TrainedModel], data: list[Example]) -> dict[str, dict]:
    """Questions a second in batches, and seconds of a lone question, in turns."""
    step = max(1, len(data) // TOGETHER)
    together = data[::step][:TOGETHER]
    calls = {}
    for name, model in models.items():
        batches, lone = Reader.of(model), Reader.of(model, as_they_come=True)

        features = build_features(together, batches.vocabulary.tokens)

        def read(reader=batches, features=features):
            evaluate(reader, together, features)

        def ask(reader=lone):
            for example in together[:ALONE]:
                reader.answer(example.question, example.context)

        # Compiled first.
        read()
        ask()
        calls[name] = (read, ask)
    seconds = {name: ([], []) for name in calls}
    for _ in range(ROUNDS):
        for name, functions in calls.items():
            for function, durations in zip(functions, seconds[name], strict=True):
                begin = time.perf_counter()
                function()
                durations.append(time.perf_counter() - begin)
    return {
        name: {
            "questions_per_second": len(together) / statistics.median(batches),
            "latency_ms": 1000 * statistics.median(lone) / min(ALONE, len(together)),
        }
        for name, (batches, lone) in seconds.items()
    }


def table(results: dict[str, dict], adversarial: list[str]) -> str:
    """The figures in Markdown."""
    columns = ["parameters", "training, examples/s", "minutes", "reading, questions/s"]
    columns += ["a lone question, ms", "dev", *adversarial]
    lines = [
        f"| reader | {' | '.join(columns)} |",
        f"| --- |{' --- |' * len(columns)}",
    ]
    for name, result in results.items():
        scores = [result["scores"], *(result["scores"][key] for key in adversarial)]
        cells = [
            f"{result['parameters']:,}",
            f"{result['examples_per_second']:.0f}",
            f"{result['seconds'] / 60:.0f}",
            f"{result['questions_per_second']:.0f}",
            f"{result['latency_ms']:.0f}",
            *(f"{pair['exact_match']:.1f} / {pair['f1']:.1f}" for pair in scores),
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(histories: dict[str, dict[str, list[float]]]) -> Figure:
    """F1 of each reader over its minutes of training."""
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    for name, history in histories.items():
        minutes = [seconds / 60 for seconds in history["seconds"]]
        axes.plot(minutes, history["f1"], marker=".", label=name)
    axes.set_xlabel("minutes of training")
    axes.set_ylabel("F1 on dev (%)")
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    return figure


def main() -> None:
    """Parses the options, measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--data", required=True, metavar="FILE")
    parser.add_argument("--adversarial", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    if len({run.name for run in options.runs}) < len(options.runs):
        parser.error("two runs have the same name, by which they are told apart")
    data = read_squad(options.data).examples
    adversarial = {
        Path(path).stem: read_squad(path).examples for path in options.adversarial
    }
    load_keras()
    models = {run.name: Run(run).load() for run in options.runs}
    histories = {run.name: read_history(run / "history.csv") for run in options.runs}
    results = {}
    for name, model in models.items():
        results[name] = {
            "parameters": trained_parameters(model.model),
            "examples_per_second": histories[name]["examples_per_second"][-1],
            "seconds": histories[name]["seconds"][-1],
            "scores": scores_of(Reader.of(model), data, adversarial),
        }
    for name, speeds in speeds_of(models, data).items():
        results[name] |= speeds
    text = json.dumps({"results": results, "histories": histories}, indent=1)
    write_text(options.output / "readers.json", text + "\n")
    figure = draw(histories)
    write_file(
        options.output / "readers.png",
        lambda file: figure.savefig(file, format="png", dpi=120),
    )
    print(table(results, list(adversarial)))


if __name__ == "__main__":
    main()
