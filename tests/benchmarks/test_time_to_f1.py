"""Tests of benchmarks/time_to_f1.py, with a script in the place of a training."""

import json
import runpy
import sys
from pathlib import Path

import pytest
from machine import machine

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "time_to_f1.py"
TRAINING = """
import os
import sys
from pathlib import Path

assert "JAX_COMPILATION_CACHE_DIR" not in os.environ
assert not Path(os.environ["XDG_CACHE_HOME"]).exists()
assert sys.argv[1:3] == ["--preset", "qanet"]
assert sys.argv[-2:] == ["--set", "training.evaluation_questions=0"]
run = Path(sys.argv[sys.argv.index("--output") + 1])
run.mkdir()
(run / "config.json").write_text('{"model": "tiny"}')
rows = ["step,exact_match,f1", "2,20.0,30.0", "4,60.0,70.0", "6,50.0,60.0"]
for count in range(1, 5):
    part = run / "part"
    part.write_text("\\n".join(rows[:count]) + "\\n")
    part.rename(run / "history.csv")
    if count == 3:
        # One that has reached its goal waits here to be stopped.
        while HANGS:
            pass
print("run directory")
"""


@pytest.fixture
def time_to_f1(monkeypatch, tmp_path, capfd):
    """Runs the script; gives its exit code and what it stored and printed."""
    main = runpy.run_path(str(SCRIPT))["main"]

    def run(training, f1):
        (tmp_path / "train.py").write_text(training, encoding="utf-8")
        output = tmp_path / "time.json"
        arguments = ["--f1", str(f1), "--output", str(output), "--", "--preset"]
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments, "qanet"])
        monkeypatch.setitem(main.__globals__, "ROOT", tmp_path)
        with pytest.raises(SystemExit) as end:
            main()
        result = json.loads(output.read_text()) if output.exists() else None
        return int(end.value.code), result, capfd.readouterr().out

    return run


def test_the_clock_stops_at_the_score(time_to_f1):
    code, result, printed = time_to_f1(TRAINING.replace("HANGS", "True"), 65)
    assert code == 0
    history = result.pop("history")
    assert [row["f1"] for row in history] == ["30.0", "70.0"]
    assert result.pop("config") == {"model": "tiny"}
    assert json.loads(printed) == result
    assert result.pop("seconds") > 0
    computed = {name: result.pop(name) for name in machine()}
    assert computed == json.loads(json.dumps(machine()))
    assert result == {
        "target": 65.0,
        "reached": True,
        "step": 4,
        "exact_match": 60.0,
        "f1": 70.0,
        "arguments": ["--preset", "qanet"],
        "backend": "tensorflow",
    }


def test_a_training_that_ends_before_tells_its_best(time_to_f1):
    code, result, printed = time_to_f1(TRAINING.replace("HANGS", "False"), 75)
    assert code == 1
    assert not result["reached"]
    assert (result["step"], result["f1"]) == (4, 70.0)
    assert "run directory" in printed


def test_a_training_that_cannot_start(time_to_f1):
    assert time_to_f1("raise SystemExit(2)", 75)[:2] == (2, None)
