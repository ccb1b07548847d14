"""Tests of benchmarks/readers.py, on a run of a moment."""

import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from qanet.run import Run

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "readers.py"


@pytest.fixture
def readers(monkeypatch):
    """Runs the script."""
    main = runpy.run_path(str(SCRIPT))["main"]
    for name, value in {"ROUNDS": 1, "STEPS": 2, "TOGETHER": 4, "ALONE": 2}.items():
        monkeypatch.setitem(main.__globals__, name, value)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, arguments)])
        main()

    run.functions = main.__globals__
    return run


@pytest.fixture
def done(readers, monkeypatch):
    """Lets every call take a second."""
    monkeypatch.setitem(readers.functions, "rate_of", lambda call: call())


def test_the_table_and_the_files(
    readers, done, trained, tiny_files, tmp_path, capsys, uncompiled
):
    attacked = tmp_path / "attacked.json"
    attacked.write_bytes(tiny_files.dev.read_bytes())
    common = ["--data", tiny_files.dev, "--output", tmp_path / "out", trained.directory]

    readers("scores", "--adversarial", attacked, *common)
    head, _, row = capsys.readouterr().out.splitlines()
    assert head.endswith("| examples | dev | attacked |")
    assert row.startswith("| trained |  |  |  |  | ")
    # Without a rate there are no minutes.
    picture = (tmp_path / "out" / "readers.png").read_bytes()
    assert picture[:4] == b"\x89PNG"

    readers("speeds", *common)
    assert (tmp_path / "out" / "readers.png").read_bytes() != picture
    row = capsys.readouterr().out.splitlines()[-1]
    found = json.loads((tmp_path / "out" / "readers.json").read_text())["trained"]
    metrics = json.loads((trained.directory / "metrics.json").read_text())
    for name in ("exact_match", "f1"):
        assert found["scores"]["dev"][name] == pytest.approx(metrics[name])
        # Nothing was attacked in a copy of dev.
        assert found["scores"]["attacked"][name] == pytest.approx(metrics[name])
    speeds = found["speeds"]
    assert row.startswith(f"| trained | {speeds['parameters']:,} |")
    assert row.endswith(f"| {metrics['exact_match']:.1f} / {metrics['f1']:.1f} |")
    batch_size = Run(trained.directory).load_config().training.batch_size
    assert speeds["examples_per_second"] == 2 * batch_size
    assert speeds["questions_per_second"] == 4
    assert speeds["latency_ms"] == 1000 / 2
    assert len(found["history"]["f1"]) == 3


def test_a_rate_is_what_was_done_by_the_seconds(readers, monkeypatch):
    clock = SimpleNamespace(perf_counter=iter([1.0, 3.0]).__next__)
    monkeypatch.setitem(readers.functions, "time", clock)
    assert readers.functions["rate_of"](lambda: 10) == 5


def test_speeds_take_no_adversarial_sets(readers, trained, tmp_path, capsys):
    with pytest.raises(SystemExit) as exit:
        readers(
            *("speeds", trained.directory, "--data", "x", "--output", tmp_path),
            *("--adversarial", "y"),
        )
    assert exit.value.code == 2
    assert "--adversarial goes with scores" in capsys.readouterr().err


def test_two_runs_of_one_name_are_refused(readers, trained, tmp_path, capsys):
    with pytest.raises(SystemExit) as exit:
        readers(
            *("scores", "--data", "x", "--output", tmp_path),
            *(trained.directory, "other/trained"),
        )
    assert exit.value.code == 2
    assert "two runs have the same name" in capsys.readouterr().err
