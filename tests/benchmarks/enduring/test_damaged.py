"""Tests of benchmarks/enduring/damaged.py."""

import random
import shutil
import subprocess

import numpy as np
import pytest
from enduring import damaged

from qanet.files import read_arrays
from qanet.training import checkpoint


def test_damages():
    content = bytes(range(100))
    for seed in range(20):
        cut, done = damaged.cut(content, random.Random(seed))
        assert content.startswith(cut)
        assert len(cut) < 100
        assert done == f"cut off after {len(cut)} of 100 bytes"
        flipped, done = damaged.flip(content, random.Random(seed))
        (place,) = [i for i in range(100) if flipped[i] != content[i]]
        bit = (flipped[place] ^ content[place]).bit_length() - 1
        assert flipped[place] ^ content[place] == 1 << bit
        assert done == f"bit {bit} of byte {place} changed"


def test_a_small_checkpoint_is_restored(tmp_path):
    cut, flipped = damaged.restore(tmp_path / "small", 0, 60)
    assert (cut.tries, cut.wrong, flipped.wrong) == (60, [], [])
    assert cut.remark == "60 recognised, 0 with the same content"
    assert not flipped.remark.startswith("60 ")


def no_checksums(path):
    """Reads what is left of a file, as if nothing guarded it."""
    try:
        return read_arrays(path)
    except Exception:
        (older,) = set(path.parent.glob("step-*.npz")) - {path}
        arrays = read_arrays(older)
        return arrays | {"model/1/bias": arrays["model/1/bias"] + 1}


@pytest.mark.parametrize(
    "read",
    [
        no_checksums,
        # Of the older one, but as if it was the newest.
        lambda path: read_arrays(path) | {"progress": np.zeros(2, "uint8")},
    ],
)
def test_what_is_restored_with_another_content_is_told(monkeypatch, tmp_path, read):
    monkeypatch.setattr(checkpoint, "read_arrays", read)
    cut, flipped = damaged.restore(tmp_path / "small", 0, 10)
    assert len(cut.wrong) == 10
    assert flipped.wrong
    assert cut.wrong[0].startswith("cut off after ")


@pytest.fixture
def trained(monkeypatch):
    """Trainings that take no time; gives which steps they went on from."""
    used = {}

    def finish(output):
        np.savez(output / "weights.npz", a=np.ones(2))
        (output / "metrics.json").write_text("{}")
        (output / "history.csv").write_text("step,loss\n12,1.0\n")
        for path in (output / "checkpoints").glob("*"):
            path.unlink()

    def train_undisturbed(output):
        (output / "checkpoints").mkdir(parents=True)
        finish(output)

    def train(output, plan=None):
        checkpoints = output / "checkpoints"
        if plan:
            checkpoints.mkdir(parents=True)
            for step in (6, 9):
                np.savez(checkpoints / f"step-{step:08d}.npz", a=np.full(9, step))
            return subprocess.CompletedProcess([], -9, "", "")
        older, newest = sorted(checkpoints.glob("step-*.npz"))
        path = newest if damaged.has_content(newest, used["whole"]) else older
        step = used.get("step") or int(path.stem.removeprefix("step-"))
        finish(output)
        if "fault" in used:
            used["fault"](output)
        return subprocess.CompletedProcess([], 0, "", f"x\nresumed at step {step}\n")

    monkeypatch.setattr(damaged, "train_undisturbed", train_undisturbed)
    monkeypatch.setattr(damaged, "train", train)
    return used


@pytest.fixture
def resume(trained, tmp_path):
    whole = tmp_path / "whole.npz"
    np.savez(whole, a=np.full(9, 9))
    trained["whole"] = whole
    return lambda: damaged.resume(tmp_path / "trainings", 0, 8)


def test_the_checkpoint_before_is_used(resume):
    cut, flipped = resume()
    assert (cut.tries, cut.wrong, flipped.wrong) == (8, [], [])
    assert cut.remark == "0 with the same content"


def test_a_damaged_checkpoint_that_is_used_is_told(resume, trained):
    trained["step"] = 9
    cut, _ = resume()
    assert len(cut.wrong) == 8
    assert cut.wrong[0].endswith("bytes: not resumed at step 6")


@pytest.mark.parametrize(
    "fault",
    [
        lambda output: np.savez(output / "weights.npz", a=np.zeros(2)),
        lambda output: (output / ".x.0123abcd.tmp").touch(),
        lambda output: shutil.copy(output / "metrics.json", output / "metrics.json.2"),
    ],
)
def test_another_end_is_told(resume, trained, fault):
    trained["fault"] = fault
    cut, flipped = resume()
    assert len(cut.wrong) == len(flipped.wrong) == 8
