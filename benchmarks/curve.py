"""Draws the learning curve of a training run.

    python benchmarks/curve.py --history runs/qanet-small/history.csv \
        --output docs/qanet-small.png

Needs the extra `plot` (matplotlib). The loss is the mean over the steps since the
evaluation before, the scores are those of the averaged weights.
"""

import argparse
import csv
from pathlib import Path

from matplotlib.figure import Figure

from qanet.files import write_file


def read_history(path: Path) -> dict[str, list[float]]:
    """The columns of a `history.csv`."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


def draw(history: dict[str, list[float]]) -> Figure:
    """Loss on the left, exact match and F1 on the right, over minutes."""
    minutes = [seconds / 60 for seconds in history["seconds"]]
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    loss, scores = figure.subplots(1, 2)
    loss.plot(minutes, history["loss"], color="tab:gray", marker=".")
    loss.set_ylabel("training loss")
    for name, label in (("f1", "F1"), ("exact_match", "exact match")):
        scores.plot(minutes, history[name], marker=".", label=label)
    scores.set_ylabel("dev score (%)")
    scores.legend(loc="lower right")
    for axes in (loss, scores):
        axes.set_xlabel("minutes")
        axes.set_xlim(left=0)
        axes.grid(alpha=0.3)
    return figure


def main() -> None:
    """Parses the options and draws."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--history", type=Path, required=True, metavar="FILE")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE.png")
    options = parser.parse_args()
    figure = draw(read_history(options.history))
    write_file(options.output, lambda file: figure.savefig(file, format="png", dpi=120))


if __name__ == "__main__":
    main()
