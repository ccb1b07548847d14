"""Tests of benchmarks/ablation.py, with a script in the place of a training."""

import json
import os
import runpy
import sys
from pathlib import Path

import pytest

from qanet.config import load_preset

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "ablation.py"
TRAINING = """
import json
import os
import sys
from pathlib import Path

run = Path(sys.argv[sys.argv.index("--output") + 1])
run.mkdir(exist_ok=True)
with (run / "calls").open("a") as file:
    json.dump([sys.argv[1:], sorted(os.sched_getaffinity(0))], file)
    print(file=file)
(run / "config.json").write_text("{}")
f1 = 71.96 if "model.heads=0" in sys.argv else 72.5
(run / "metrics.json").write_text(json.dumps({"exact_match": 60.25, "f1": f1}))
(run / "history.csv").write_text("step,examples_per_second\\n1,9.0\\n2,25.4\\n")
"""


@pytest.fixture
def ablation(monkeypatch, tmp_path, capsys):
    """Runs the script; gives what it printed."""
    main = runpy.run_path(str(SCRIPT))["main"]
    (tmp_path / "train.py").write_text(TRAINING, encoding="utf-8")
    monkeypatch.setitem(main.__globals__, "ROOT", tmp_path)

    def run(*arguments):
        output = ["--output", str(tmp_path / "runs")]
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *output, *arguments])
        main()
        return capsys.readouterr().out

    return run


def calls(directory):
    lines = (directory / "calls").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_the_table(ablation, tmp_path):
    only = ["--only", "qanet-small", "no self-attention", "--", "--train", "x.json"]
    assert ablation(*only).splitlines()[2:] == [
        "| qanet-small | 25 | 60.2 | 72.5 | +0.0 |",
        "| no self-attention | 25 | 60.2 | 72.0 | -0.5 |",
    ]
    ((arguments, _),) = calls(tmp_path / "runs" / "no-self-attention")
    assert arguments[2:6] == ["--preset", "qanet-small", "--train", "x.json"]
    assert arguments[-2:] == ["--set", "model.heads=0"]
    assert "training.steps=5460" in arguments


def test_finished_runs_are_not_repeated_and_begun_ones_go_on(ablation, tmp_path):
    begun = tmp_path / "runs" / "no-self-attention"
    begun.mkdir(parents=True)
    (begun / "config.json").write_text("{}")
    for _ in range(2):
        ablation("--only", "qanet-small", "no self-attention")
    assert len(calls(tmp_path / "runs" / "qanet-small")) == 1
    ((arguments, _),) = calls(begun)
    assert arguments == ["--output", str(begun), "--resume"]


def test_jobs_share_the_cores(ablation, tmp_path):
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("one core alone")
    ablation("--jobs", "2", "--only", "qanet-small", "no self-attention")
    runs = [calls(path.parent) for path in (tmp_path / "runs").glob("*/calls")]
    (((_, first),), ((_, second),)) = runs
    assert sorted(first + second) == sorted(before)
    assert os.sched_getaffinity(0) == before


def test_a_training_that_fails_is_named(ablation, tmp_path):
    (tmp_path / "train.py").write_text("raise SystemExit(2)", encoding="utf-8")
    with pytest.raises(SystemExit, match="no characters: the training failed"):
        ablation("--only", "no characters")


def test_each_variant_is_a_configuration_of_its_own():
    variants = runpy.run_path(str(SCRIPT))["VARIANTS"]
    configurations = {
        name: load_preset("qanet-small", list(settings)).model
        for name, settings in variants.items()
    }
    assert len({repr(model) for model in configurations.values()}) == len(variants)
