"""Tests of benchmarks/enduring/disks.py, with a command that does as it is told."""

import hashlib
import json
import random
import subprocess
from pathlib import Path

import pytest
from enduring import disks


@pytest.fixture(autouse=True)
def told_command(monkeypatch):
    """A command for what this file tries."""
    monkeypatch.setattr(disks, "mount", lambda *_: False)
    command = disks.Command("do {inputs}/read {out}/made", ("read",), ("made.part",))
    monkeypatch.setitem(disks.COMMANDS, "do", command)


class Fake:
    """A command that writes `made`, and at a fault does what it is told.

    Attributes:
        code, said: how it ends at a fault.
        leaves: files that it leaves there.
        again: what it writes when it is given again.
    """

    def __init__(self):
        self.code, self.said, self.leaves, self.again = None, "error: it\n", [], "made"
        self.plans = []

    def __call__(self, arguments, plan, cache, prefix=()):
        _, read, made = arguments[:3]
        assert arguments[3] == "--quiet"
        out = Path(made).parent
        self.plans.append(plan)
        if "counts" in plan:
            # The first run also fills the cache.
            is_first = len(self.plans) == 1
            counts = {"rename": 9 if is_first else 2, "start": 5}
            Path(plan["counts"]).write_text(json.dumps(counts))
            Path(made).write_text("made")
        elif plan or not out.stat().st_mode & 0o200:
            code = self.code or (143 if plan.get("act") == "terminate" else 2)
            for name in self.leaves:
                (out / name).parent.mkdir(exist_ok=True)
                (out / name).write_text("half")
            said = "stopped\n" if code == 143 else self.said
            if plan.get("act") == "remove":
                Path(read).unlink()
            return subprocess.CompletedProcess(arguments, code, "", said)
        else:
            assert Path(read).read_text() == "content"
            Path(made).write_text(self.again)
        return subprocess.CompletedProcess(arguments, 0, "", "")


@pytest.fixture
def fake(monkeypatch):
    fake = Fake()
    monkeypatch.setattr(disks, "run_command", fake)
    monkeypatch.setattr(disks.shutil, "which", lambda _: "found")
    return fake


@pytest.fixture
def endure(fake, monkeypatch, tmp_path):
    def prepare(place):
        (place / "inputs").mkdir()
        (place / "inputs" / "read").write_text("content")

    monkeypatch.setattr(disks, "prepare", prepare)
    return lambda: disks.endure(tmp_path, 0, 3, ["do"])


def test_a_command_that_ends_well(endure, fake):
    fake.leaves = ["made.part"]
    rows = endure()
    assert [(row.what, row.tries, row.wrong) for row in rows] == [
        ("do: full disk", 3, []),
        ("do: no permission", 1, []),
        ("do: a file removed", 3, []),
        ("do: SIGTERM", 3, []),
    ]
    _, _, *faults = [plan for plan in fake.plans if plan]
    assert all(0 < plan["largest"] <= 4 for plan in faults[:3])
    assert {plan["act"] for plan in faults[3:]} == {"remove", "terminate"}
    counts = {"rename": 2, "start": 5}
    assert all(0 < plan["number"] <= counts[plan["kind"]] for plan in faults[3:])


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ({"code": 1}, "exit code 1: error: it, not exit code"),
        ({"leaves": [".made.0123abcd.tmp"]}, "leaves .made.0123abcd.tmp"),
        ({"leaves": ["made"]}, "leaves made"),
        ({"leaves": ["tmpabc/half"]}, "leaves tmpabc/half"),
        ({"again": "other"}, "then again: made is left over or another"),
    ],
)
def test_what_is_wrong_is_told(endure, fake, fault, told):
    vars(fake).update(fault)
    rows = endure()
    expected = [3, 0, 3, 3] if "again" in fault else [3, 1, 3, 3]
    for row, tries in zip(rows, expected, strict=True):
        assert len([line for line in row.wrong if told in line]) == tries, row


@pytest.mark.parametrize(
    "said",
    ["", "Traceback (most recent call last):\nerror: it\n", "warning: it\n", "a\nb\n"],
)
def test_other_than_one_line_is_told(endure, fake, said):
    fake.said = said
    rows = endure()
    assert [len(row.wrong) for row in rows] == [3, 1, 3, 0]
    assert f"says {said!r}" in rows[0].wrong[0]


def test_sigterm_that_is_overlooked_is_told(endure, fake):
    fake.code = -15
    *_, terminated = endure()
    assert len(terminated.wrong) == 2 * 3
    assert "exit code -15" in terminated.wrong[0]


def test_without_rights_nothing_is_tried(endure, fake, monkeypatch):
    monkeypatch.setattr(disks.os, "geteuid", lambda: 0)
    monkeypatch.setattr(disks.shutil, "which", lambda _: None)
    row = endure()[1]
    assert (row.tries, row.wrong) == (0, [])
    assert row.remark.startswith("skipped: root may write everything")


def test_what_is_finished_has_nothing_to_go_on_with(fake, tmp_path):
    (tmp_path / "inputs").mkdir()
    trial = disks.Trial(tmp_path, "do", random.Random(0))
    trial.out.mkdir()
    process = subprocess.CompletedProcess([], 143, "", "stopped\n")
    (trial.out / "made.part").touch()
    assert trial._judged(process, 143, "it") == []
    (trial.out / "made").write_text("made")
    assert trial._judged(process, 143, "it") == ["it: leaves made.part"]


def test_a_file_with_its_own_checksum_is_as_good(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for directory, content in ((one, b"a"), (other, b"b")):
        directory.mkdir()
        (directory / "x.onnx").write_bytes(content)
    assert disks.unlike(one, other, ()) == ["x.onnx is left over or another"]
    for directory, content in ((one, b"a"), (other, b"b")):
        line = f"{hashlib.sha256(content).hexdigest()}  x.onnx\n"
        (directory / "SHA256SUMS").write_text(line)
    assert disks.unlike(one, other, ()) == []
    (other / "x.onnx").write_bytes(b"half")
    assert disks.unlike(one, other, ()) == ["x.onnx is left over or another"]
    (other / "x.onnx").unlink()
    assert disks.unlike(one, other, ()) == ["x.onnx is missing"]


def test_the_commands_are_those_of_the_package(tmp_path):
    from qanet.cli import make_parser

    parser = make_parser()
    for name in ("train", "export", "evaluate", "answer", "augment"):
        arguments = disks.COMMANDS[name].arguments(tmp_path, tmp_path / "out")
        assert parser.parse_args(arguments).name == name
    (tmp_path / "out" / "run").mkdir(parents=True)
    (tmp_path / "out" / "run" / "config.json").touch()
    assert "--resume" in disks.COMMANDS["train"].arguments(tmp_path, tmp_path / "out")


def test_files_that_may_be_removed(tmp_path):
    (tmp_path / "export").mkdir()
    for name in ("dev.json", "export/a", "export/b", "other"):
        (tmp_path / name).touch()
    files = disks.COMMANDS["evaluate"].files(tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in files] == [
        "dev.json",
        "export/a",
        "export/b",
    ]


def test_draws_are_of_the_seed(fake, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name / "inputs").mkdir(parents=True)
    trials = [disks.Trial(tmp_path / n, "do", random.Random(3)) for n in ("a", "b")]
    assert [trials[0]._moment() for _ in range(5)] == [
        trials[1]._moment() for _ in range(5)
    ]
