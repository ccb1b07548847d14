"""What each part of QANet is worth: the paper's ablation, on a small model.

    python benchmarks/ablation.py --output runs/ablation -- --train train-v1.1.json \
        --dev dev-v1.1.json --vectors glove.840B.300d.txt

Trains `qanet-small` for one epoch as it is and with each change, prints a table of
what was reached on the whole of dev, and writes it to `table.md` beside the runs.
What follows `--` goes to every `train.py`. The weights of the last step are evaluated,
so nothing is chosen on dev. A run that is finished is not repeated, one that was
stopped goes on: start the same command again. With `--jobs 2` two are trained side by
side, each on half of the cores.
"""

import argparse
import csv
import json
import os
import queue
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from qanet.files import write_text

ROOT = Path(__file__).parents[1]
PRESET = ("--preset", "qanet-small")
# An epoch of SQuAD. The paper has no question match, which also reads characters.
EPOCH = (
    "training.steps=5460",
    "training.evaluate_every=5460",
    "model.question_match=false",
)
BASE = "qanet-small"
VARIANTS = {
    BASE: (),
    "no convolution": (
        "model.embedding_encoder.convolutions=0",
        "model.model_encoder.convolutions=0",
    ),
    "no self-attention": ("model.heads=0",),
    "plain convolutions, not separable": ("model.separable=false",),
    "no characters": ("model.character_width=0",),
    # The small model does without.
    "with stochastic depth": ("model.survival=0.9",),
    "attention from context to question alone": ("model.attention=context_to_query",),
    "co-attention of DCN": ("model.attention=dcn",),
}


def run_of(name: str, directory: Path) -> Path:
    """The run directory of a variant."""
    return directory / name.replace(",", "").replace(" ", "-")


def train(name: str, arguments: list[str], directory: Path, cores: set[int]) -> None:
    """Trains a variant to its end, on some cores."""
    run = run_of(name, directory)
    if (run / "metrics.json").exists():
        return
    # Of this thread, whose processes inherit it.
    os.sched_setaffinity(0, cores)
    command = [sys.executable, str(ROOT / "train.py"), "--output", str(run)]
    if (run / "config.json").exists():
        command.append("--resume")
    else:
        command += [*PRESET, *arguments]
        for setting in (*EPOCH, *VARIANTS[name]):
            command += ["--set", setting]
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"{run.name}.log").open("ab") as log:
        result = subprocess.run(command, stdout=log, stderr=log)
    if result.returncode:
        raise SystemExit(f"{name}: the training failed, see {log.name}")


def train_all(names: list[str], arguments: list[str], directory: Path, jobs: int):
    """Trains several variants, `jobs` of them at a time."""
    cores = sorted(os.sched_getaffinity(0))
    jobs = min(jobs, len(cores))
    free = queue.SimpleQueue()
    for job in range(jobs):
        free.put(set(cores[job::jobs]))

    def work(name: str) -> None:
        own = free.get()
        try:
            train(name, arguments, directory, own)
        finally:
            free.put(own)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, names))


def table(names: list[str], directory: Path) -> str:
    """The scores of finished runs in Markdown, and their distance from the first."""
    lines = [
        "| variant | examples/s | exact match | F1 | difference |",
        "| --- | --- | --- | --- | --- |",
    ]
    scores = {}
    for name in names:
        run = run_of(name, directory)
        scores[name] = json.loads((run / "metrics.json").read_bytes())
        with (run / "history.csv").open(newline="", encoding="utf-8") as file:
            last = list(csv.DictReader(file))[-1]
        f1 = scores[name]["f1"]
        lines.append(
            f"| {name} | {float(last['examples_per_second']):.0f} "
            f"| {scores[name]['exact_match']:.1f} | {f1:.1f} "
            f"| {f1 - scores[names[0]]['f1']:+.1f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Parses the options, trains, prints and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--output", type=Path, default=Path("runs/ablation"), metavar="DIR"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=VARIANTS,
        default=list(VARIANTS),
        metavar="NAME",
        help=f"some of {', '.join(map(repr, VARIANTS))}",
    )
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="of train.py")
    options = parser.parse_args()
    train_all(options.only, options.arguments, options.output, options.jobs)
    text = table(options.only, options.output)
    write_text(options.output / "table.md", text)
    print(text, end="")


if __name__ == "__main__":
    main()
