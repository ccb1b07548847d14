"""Whether trainings that are ended at random moments come to the same result.

A reader of few weights is trained on the sample for a few steps, once undisturbed and
then many times with SIGKILL or SIGTERM at drawn moments, see `enduring.moments`.
"""

import csv
import json
import random
import signal
import subprocess
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from enduring import moments
from enduring.findings import Finding
from enduring.processes import ending, run_command
from qanet.cli import TERMINATED
from qanet.console import progress_bar

TRAININGS = 50
# Trainings at a time.
JOBS = 2
# The most times that a training is ended.
ENDS = 3
# How a process that is ended so exits.
CODES = {"kill": -signal.SIGKILL, "terminate": TERMINATED}
KINDS = ("start", "step", "evaluation", "checkpoint", "rename")
SETTINGS = """
    data.context_limit=96 data.question_limit=24 data.buckets=[96]
    vocabulary.word_width=8 vocabulary.characters_per_word=8
    model.width=8 model.heads=2 model.feed_forward=8
    model.embedding_encoder.blocks=1 model.embedding_encoder.convolutions=1
    model.model_encoder.blocks=1 model.model_encoder.convolutions=1
    model.character_width=4 model.character_filters=0 model.highway_layers=0
    model.word_dropout=0.1 model.dropout=0.1 model.survival=0.8
    training.steps=12 training.batch_size=4 training.learning_rate=0.01
    training.warmup_steps=2 training.evaluate_every=3 training.checkpoint_every=2
    training.evaluation_questions=24 training.evaluation_batch_size=8
""".split()
# Columns of the history that tell the time.
TIMES = ("seconds", "steps_per_second", "examples_per_second", "model_gflops")


def run(seed: int) -> list[Finding]:
    """Trains, ends and compares."""
    with tempfile.TemporaryDirectory() as directory:
        return endure(Path(directory), seed, TRAININGS)


def endure(directory: Path, seed: int, trainings: int) -> list[Finding]:
    """What becomes of some trainings, each in a directory of its own below one."""
    expected = directory / "undisturbed"
    counts = train_undisturbed(expected)
    draws = random.Random(seed)
    plans = [draw_ends(draws, counts) for _ in range(trainings)]
    found = Finding("trainings ended and resumed", trainings)
    kinds, acts = Counter(), Counter()
    with (
        ThreadPoolExecutor(JOBS) as pool,
        progress_bar(total=trainings, desc="trainings", unit="training") as bar,
    ):
        places = [directory / f"training-{i}" for i in range(trainings)]
        for i, (ended, wrong) in enumerate(pool.map(end_and_resume, places, plans)):
            kinds.update(end["kind"] for end in ended)
            acts.update(end["act"] for end in ended)
            wrong = wrong or differences(expected, places[i])
            found.wrong += [f"training {i}, ended by {plans[i]}: {w}" for w in wrong]
            bar.update()
    rows = [Finding(f"ends: {moments.KINDS[kind]}", kinds[kind]) for kind in KINDS]
    found.remark = f"{acts['kill']} by SIGKILL, {acts['terminate']} by SIGTERM"
    return [found, *rows]


def draw_ends(draws: random.Random, counts: Counter) -> list[dict]:
    """How, and at which moments, a training is ended; see `enduring.moments`."""
    return [
        {
            "kind": kind,
            "number": draws.randint(1, counts[kind]),
            "act": draws.choice(sorted(CODES)),
        }
        for kind in draws.choices(KINDS, k=draws.randint(1, ENDS))
    ]


def train_undisturbed(output: Path) -> Counter:
    """Trains to the end; gives how many moments of each kind there were."""
    counts = output.with_name(f"{output.name}.counts")
    process = train(output, {"counts": str(counts)})
    if process.returncode:
        raise RuntimeError(f"the undisturbed training failed: {process.stderr}")
    return Counter(json.loads(counts.read_text()))


def train(output: Path, plan: dict | None = None) -> subprocess.CompletedProcess:
    """Starts a training, or goes on with the one that is there, as a user would."""
    begun = (output / "config.json").exists()
    return run_command(
        ["train", *(["--resume"] if begun else begin()), "--output", str(output)],
        plan or {},
        output.with_name(f"{output.name}.cache"),
    )


def begin(train: str = "sample", dev: str = "sample") -> list[str]:
    """The options of a new training."""
    sets = [part for setting in SETTINGS for part in ("--set", setting)]
    return ["--train", train, "--dev", dev, *sets]


def end_and_resume(output: Path, ends: list[dict]) -> tuple[list[dict], list[str]]:
    """Trains to the end, and is ended a few times before.

    A resumed training has fewer moments than a whole one, so that not all that was
    drawn comes.

    Returns:
        The ends that came, and what went wrong.
    """
    ended = []
    for end in ends:
        process = train(output, end)
        if process.returncode == 0:
            return ended, []
        if process.returncode != CODES[end["act"]]:
            return ended, [ending(process)]
        ended.append(end)
    process = train(output)
    return ended, [ending(process)] if process.returncode else []


def differences(expected: Path, actual: Path) -> list[str]:
    """What a run directory has else than another, but for the time that it took."""
    found = []
    files = [listing(path) for path in (expected, actual)]
    for name in sorted(files[0] ^ files[1]):
        found.append(f"{name} is {'missing' if name in files[0] else 'left over'}")
    if found:
        return found
    arrays = [np.load(path / "weights.npz") for path in (expected, actual)]
    with arrays[0] as one, arrays[1] as other:
        if one.files != other.files:
            found.append("weights.npz has other arrays")
        else:
            for name in one.files:
                if not identical(one[name], other[name]):
                    found.append(f"weights.npz: {name} is another")
    texts = [(path / "metrics.json").read_bytes() for path in (expected, actual)]
    if texts[0] != texts[1]:
        found.append("metrics.json is another")
    rows = [history(path / "history.csv") for path in (expected, actual)]
    if rows[0] != rows[1]:
        found.append("history.csv is another")
    return found


def identical(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays are the same bit for bit."""
    return (one.dtype, one.shape, one.tobytes()) == (
        other.dtype,
        other.shape,
        other.tobytes(),
    )


def listing(directory: Path) -> set[str]:
    """The files below a run directory.

    Without the curves, one file a process, and without the second newest of the two
    checkpoints: a stop leaves one of its own step.
    """
    older = sorted(directory.glob("checkpoints/step-*.npz"))[-2:-1]
    return {
        path.relative_to(directory).as_posix()
        for path in directory.rglob("*")
        if path.is_file() and path.parent.name != "tensorboard" and path not in older
    }


def history(path: Path) -> list[dict[str, str]]:
    """The rows of a history, without the columns that tell the time."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {name: value for name, value in row.items() if name not in TIMES}
            for row in csv.DictReader(file)
        ]
