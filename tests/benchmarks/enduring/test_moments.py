"""Tests of benchmarks/enduring/moments.py."""

import json
import os
import signal
import sys
from types import SimpleNamespace

import pytest
from enduring import moments


@pytest.mark.parametrize("act", ["kill", "terminate"])
def test_a_signal_at_the_moment_that_was_drawn(monkeypatch, act):
    sent = []
    monkeypatch.setattr(os, "kill", lambda *what: sent.append(what))
    counted = moments.Moments({"kind": "step", "number": 2, "act": act})
    counted("rename")
    counted("step")
    assert not sent
    counted("step")
    number = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM}[act]
    assert sent == [(os.getpid(), number)]
    counted("step")
    assert len(sent) == 1
    assert counted.counts == {"step": 3, "rename": 1}


def test_a_file_is_removed(tmp_path):
    path = tmp_path / "file"
    path.touch()
    plan = {"kind": "step", "number": 1, "act": "remove", "path": str(path)}
    moments.Moments(plan)("step")
    assert not path.exists()


def test_what_is_hooked_does_what_it_did(monkeypatch, tmp_path):
    counted = moments.Moments({})
    called = []
    progress = SimpleNamespace(
        ProgressBar=type("Bar", (), {"step": lambda self, loss: called.append(loss)})
    )
    moments.put_steps(progress, counted)
    progress.ProgressBar().step(1.5)
    reader = SimpleNamespace(
        Reader=type("Reader", (), {"_plan": lambda self, *a: list(a)})
    )
    moments.put_batches(reader, counted)
    assert list(reader.Reader()._plan("a", "b")) == ["a", "b"]
    arrays = SimpleNamespace(write_array=lambda *a, **o: called.append((a, o)))
    moments.put_arrays(arrays, counted)
    arrays.write_array("file", "array", allow_pickle=False)
    assert called == [1.5, (("file", "array"), {"allow_pickle": False})]
    for name in ("replace", "rename"):
        monkeypatch.setattr(os, name, getattr(os, name))
    moments.put_renames(counted)
    (tmp_path / "one").touch()
    os.replace(tmp_path / "one", tmp_path / "two")
    assert [path.name for path in tmp_path.iterdir()] == ["two"]
    assert counted.counts == {
        "step": 1,
        "evaluation": 2,
        "checkpoint": 1,
        "rename": 2,
    }


def test_modules_are_hooked_when_they_are_imported(monkeypatch, tmp_path):
    (tmp_path / "hooked_here.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(
        moments.PUTTING,
        "hooked_here",
        lambda module, counted: setattr(module, "value", module.value + 1),
    )
    counted = moments.Moments({})
    monkeypatch.setattr(sys, "meta_path", [moments.Finder(counted), *sys.meta_path])
    import hooked_here

    assert hooked_here.value == 2
    assert counted.counts["start"] >= 1
    del sys.modules["hooked_here"]


def test_all_that_is_hooked_is_there():
    """Else nothing would be counted, and no training killed there."""
    import numpy.lib.format

    from qanet.reader import Reader
    from qanet.training.progress_bar import ProgressBar
    from qanet.translation import translator

    assert callable(numpy.lib.format.write_array)
    assert callable(Reader._plan)
    assert callable(ProgressBar.step)
    assert "apertium" in translator._KINDS


@pytest.mark.skipif(os.name != "posix", reason="has no such signals")
def test_real_processes(door, tmp_path):
    counts, script = tmp_path / "counts", moments.__file__
    whole = door(script, json.dumps({"counts": str(counts)}), "settings")
    assert whole.returncode == 0
    assert whole.stdout.startswith("#")
    number = json.loads(counts.read_text())["start"] // 2
    for act, code in (("kill", -signal.SIGKILL), ("terminate", 143)):
        plan = {"kind": "start", "number": number, "act": act}
        process = door(script, json.dumps(plan), "settings")
        assert (process.returncode, process.stdout) == (code, "")
        assert process.stderr == ("stopped\n" if act == "terminate" else "")
