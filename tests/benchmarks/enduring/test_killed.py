"""Tests of benchmarks/enduring/killed.py, with trainings that write a few files."""

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from enduring import killed

KINDS = ("start", "step", "evaluation", "checkpoint", "rename")


def write_run(directory, seconds=1.0):
    """A finished run, small and always the same but for its time."""
    (directory / "checkpoints").mkdir(parents=True, exist_ok=True)
    (directory / "tensorboard").mkdir(exist_ok=True)
    (directory / "config.json").write_text("{}")
    (directory / "metrics.json").write_text('{"f1": 50.0}\n')
    (directory / "history.csv").write_text(
        f"step,seconds,loss\n3,{seconds},1.5\n6,{seconds},0.25\n"
    )
    np.savez(directory / "weights.npz", a=np.zeros(3, "float32"), b=np.ones(2))
    (directory / "checkpoints" / "step-00000006.npz").touch()
    (directory / "tensorboard" / f"events.{seconds}").touch()


@pytest.fixture
def trained(monkeypatch):
    """Commands that train at once; gives what they were asked for, and a fault."""
    asked, faults = [], {}

    def run_command(arguments, plan, cache):
        output = Path(arguments[arguments.index("--output") + 1])
        resumed = "--resume" in arguments
        asked.append((output.name, resumed, plan))
        assert resumed == (output / "config.json").exists()
        if "counts" in plan:
            counts = dict.fromkeys(KINDS, 2)
            Path(plan["counts"]).write_text(json.dumps(counts))
        if "act" in plan:
            if plan["kind"] != "start":
                output.mkdir(exist_ok=True)
                (output / "config.json").write_text("{}")
            code = {"kill": -9, "terminate": 143}[plan["act"]]
            return subprocess.CompletedProcess(arguments, code, "", "")
        write_run(output, seconds=len(asked))
        code = 0
        if resumed and "fault" in faults:
            code = faults["fault"](output) or 0
        return subprocess.CompletedProcess(arguments, code, "", "a\nTypeError: b\n")

    monkeypatch.setattr(killed, "run_command", run_command)
    return asked, faults


def test_trainings_that_come_to_the_same_end(trained, tmp_path):
    found, *ends = killed.endure(tmp_path, 0, 12)
    assert found.wrong == []
    assert found.tries == 12
    total = sum(row.tries for row in ends)
    assert total >= 12
    assert all(row.tries for row in ends)
    asked, _ = trained
    acts = Counter(plan["act"] for _, _, plan in asked if "act" in plan)
    assert acts.total() == total
    assert all(acts[act] for act in ("kill", "terminate"))
    told = f"{acts['kill']} by SIGKILL, {acts['terminate']} by SIGTERM"
    assert found.remark == told
    plans = Counter(plan["kind"] for _, _, plan in asked if "kind" in plan)
    assert plans == {kind: row.tries for kind, row in zip(KINDS, ends, strict=True)}
    # Each is let alone at last.
    assert len(asked) == 1 + total + 12


def test_the_seed_draws_the_moments(trained, tmp_path):
    def plans(name, seed):
        (tmp_path / name).mkdir()
        trained[0].clear()
        killed.endure(tmp_path / name, seed, 4)
        return sorted(json.dumps(a) for a in trained[0] if "kind" in a[2])

    assert plans("a", 1) == plans("b", 1)
    assert plans("c", 1) != plans("d", 2)


@pytest.mark.parametrize(
    "fault",
    [
        lambda output: 1,
        lambda output: (output / ".weights.npz.0123abcd.tmp").touch(),
        lambda output: (output / "history.csv").write_text("step,loss\n3,1.5\n"),
    ],
)
def test_one_that_comes_to_another_end_is_told(trained, tmp_path, fault):
    trained[1]["fault"] = fault
    found, *_ = killed.endure(tmp_path, 0, 6)
    assert found.wrong
    assert all(line.startswith("training ") for line in found.wrong)
    assert "ended by [{'kind'" in found.wrong[0]


def change_weight(run):
    weights = np.zeros(3, "float32")
    weights[1] = -0.0
    np.savez(run / "weights.npz", a=weights, b=np.ones(2))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (change_weight, "weights.npz: a is another"),
        (
            lambda run: np.savez(run / "weights.npz", a=np.zeros(3), b=np.ones(2)),
            "weights.npz: a is another",
        ),
        (
            lambda run: np.savez(run / "weights.npz", a=np.zeros(3, "float32")),
            "weights.npz has other arrays",
        ),
        (
            lambda run: (run / "metrics.json").write_text('{"f1": 50.1}\n'),
            "metrics.json is another",
        ),
        (
            lambda run: (run / "history.csv").write_text(
                "step,seconds,loss\n3,1.0,1.5\n6,1.0,0.250001\n"
            ),
            "history.csv is another",
        ),
        (
            lambda run: (run / "history.csv").write_text(
                "step,seconds,loss\n3,1.0,1.5\n"
            ),
            "history.csv is another",
        ),
        (lambda run: (run / "metrics.json").unlink(), "metrics.json is missing"),
        (
            lambda run: (run / "checkpoints" / ".step-1.npz.0123abcd.tmp").touch(),
            "checkpoints/.step-1.npz.0123abcd.tmp is left over",
        ),
    ],
)
def test_differences(tmp_path, change, told):
    one, other = tmp_path / "one", tmp_path / "other"
    write_run(one)
    shutil.copytree(one, other)
    (other / "tensorboard" / "events.of.another.process").touch()
    # Of a step at which it was stopped.
    (other / "checkpoints" / "step-00000005.npz").touch()
    assert killed.differences(one, other) == []
    write_run(other, seconds=2.0)
    assert killed.differences(one, other) == []
    change(other)
    assert killed.differences(one, other) == [told]


def test_an_undisturbed_training_that_fails(monkeypatch, tmp_path):
    failed = subprocess.CompletedProcess([], 2, "", "error: no data\n")
    monkeypatch.setattr(killed, "run_command", lambda *_: failed)
    with pytest.raises(RuntimeError, match="no data"):
        killed.endure(tmp_path, 0, 1)
