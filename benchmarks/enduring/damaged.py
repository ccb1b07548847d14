"""Whether a damaged checkpoint is recognised, and the one before it used.

Checkpoints are cut off at drawn places, or one of their bits is changed: those of a
killed training, which is then resumed to its end, and thousands of times a small one.
"""

import random
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from enduring.findings import Finding
from enduring.killed import (
    JOBS,
    differences,
    identical,
    train,
    train_undisturbed,
)
from enduring.processes import ending
from qanet.backend import load_keras
from qanet.console import progress_bar
from qanet.files import DamagedFile, read_arrays

# Of either kind of damage.
COPIES = 10
TRIES = 2000
# The training is killed at this step, after several checkpoints.
STEP = 11


def run(seed: int) -> list[Finding]:
    """Damages checkpoints and resumes."""
    with tempfile.TemporaryDirectory() as directory:
        return [
            *restore(Path(directory) / "small", seed, TRIES),
            *resume(Path(directory), seed, COPIES),
        ]


def cut(content: bytes, draws: random.Random) -> tuple[bytes, str]:
    """Content without its end, and what was done."""
    size = draws.randrange(len(content))
    return content[:size], f"cut off after {size} of {len(content)} bytes"


def flip(content: bytes, draws: random.Random) -> tuple[bytes, str]:
    """Content with a bit changed, and what was done."""
    place, bit = draws.randrange(len(content)), draws.randrange(8)
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    return bytes(changed), f"bit {bit} of byte {place} changed"


DAMAGES = {"cut off": cut, "with one bit changed": flip}


def resume(directory: Path, seed: int, copies: int) -> list[Finding]:
    """Resumes copies of a killed training whose newest checkpoint is damaged."""
    expected, killed = directory / "undisturbed", directory / "killed"
    train_undisturbed(expected)
    process = train(killed, {"kind": "step", "number": STEP, "act": "kill"})
    if process.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the training was not killed: {ending(process)}")
    before, newest = sorted((killed / "checkpoints").glob("step-*.npz"))
    draws, content = random.Random(seed), newest.read_bytes()
    rows = []
    for what, damage in DAMAGES.items():
        found = Finding(f"training resumed from a checkpoint {what}", copies)
        rows.append(found)
        tries, read = [], 0
        for i in range(copies):
            copy = directory / f"{damage.__name__}-{i}"
            shutil.copytree(killed, copy)
            damaged, done = damage(content, draws)
            (copy / "checkpoints" / newest.name).write_bytes(damaged)
            same = has_content(copy / "checkpoints" / newest.name, newest)
            tries.append((copy, done, newest if same else before))
            read += same
        with (
            ThreadPoolExecutor(JOBS) as pool,
            progress_bar(total=copies, desc=what, unit="training") as bar,
        ):
            processes = pool.map(train, [copy for copy, _, _ in tries])
            for (copy, done, used), process in zip(tries, processes, strict=True):
                wrong = judge(process, used) or differences(expected, copy)
                found.wrong += [f"{done}: {line}" for line in wrong]
                bar.update()
        found.remark = f"{read} with the same content"
    return rows


def has_content(damaged: Path, whole: Path) -> bool:
    """Whether a damaged file is read, and as the whole one is."""
    try:
        arrays, expected = read_arrays(damaged), read_arrays(whole)
    except DamagedFile:
        return False
    return arrays.keys() == expected.keys() and all(
        identical(arrays[name], expected[name]) for name in arrays
    )


def judge(process, used: Path) -> list[str]:
    """What is wrong with a training that should go on from a checkpoint."""
    if process.returncode:
        return [ending(process)]
    step = int(used.stem.removeprefix("step-"))
    if f"resumed at step {step}\n" not in process.stderr:
        return [f"not resumed at step {step}"]
    return []


def restore(directory: Path, seed: int, tries: int) -> list[Finding]:
    """Restores a small checkpoint that is damaged in some ways of either kind."""
    load_keras()

    import keras

    from qanet.training.checkpoint import Progress, restore_checkpoint, save_checkpoint

    draws = np.random.default_rng(seed)
    shapes = {"kernel": (5, 3), "bias": (3,), "rate": ()}
    variables = {
        f"model/{i}/{name}": keras.Variable(np.zeros(shape, "float32"))
        for i, (name, shape) in enumerate(shapes.items())
    }
    variables["optimizer/0/iteration"] = keras.Variable(0, dtype="int64")
    contents = {}
    for step in (1, 2):
        for variable in variables.values():
            variable.assign(draws.normal(size=variable.shape) * 100)
        row = {"step": step, "f1": draws.uniform()}
        progress = Progress(step, 4 * step, 1.5, row["f1"], 0, [row])
        save_checkpoint(directory, variables, progress)
        contents[step] = (progress, values(variables))

    def restored() -> int:
        for variable in variables.values():
            variable.assign(np.zeros(variable.shape))
        progress = restore_checkpoint(directory, variables)
        expected, arrays = contents[progress.step]
        now = values(variables)
        if progress != expected or not all(
            identical(arrays[name], now[name]) for name in arrays
        ):
            raise ValueError(f"step {progress.step} has another content")
        return progress.step

    newest = directory / "step-00000002.npz"
    return [
        damage_often(newest, damage, what, seed, tries, restored)
        for what, damage in DAMAGES.items()
    ]


def damage_often(
    newest: Path,
    damage: Callable,
    what: str,
    seed: int,
    tries: int,
    restored: Callable[[], int],
) -> Finding:
    """Damages the newest of two checkpoints again and again.

    Args:
        newest: its file.
        damage: from content to damaged content, and what was done.
        what: names the damage.
        seed: of what is drawn.
        tries: how often.
        restored: gives the step of what is restored, once its content was compared.
    """
    draws, content = random.Random(seed), newest.read_bytes()
    found, steps = Finding(f"small checkpoint {what}", tries), Counter()
    for _ in progress_bar(iterable=range(tries), desc=what, unit="try"):
        damaged, done = damage(content, draws)
        newest.write_bytes(damaged)
        try:
            steps[restored()] += 1
        # Whatever it is, no user's training may end with it.
        except Exception as error:
            found.wrong.append(f"{done}: {type(error).__name__}: {error}")
    newest.write_bytes(content)
    found.remark = f"{steps[1]} recognised, {steps[2]} with the same content"
    return found


def values(variables) -> dict[str, np.ndarray]:
    """The present values of variables."""
    return {name: np.array(variable) for name, variable in variables.items()}
