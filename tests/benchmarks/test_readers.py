"""Tests of benchmarks/readers.py, on a run of a moment."""

import json
import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "readers.py"


@pytest.fixture
def readers(monkeypatch):
    """Runs the script."""
    main = runpy.run_path(str(SCRIPT))["main"]
    for name, value in {"ROUNDS": 1, "TOGETHER": 4, "ALONE": 2}.items():
        monkeypatch.setitem(main.__globals__, name, value)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, arguments)])
        main()

    return run


def test_the_table_and_the_files(readers, trained, tiny_files, tmp_path, capsys):
    attacked = tmp_path / "attacked.json"
    attacked.write_bytes(tiny_files.dev.read_bytes())
    arguments = ["--data", tiny_files.dev, "--adversarial", attacked]
    readers(*arguments, "--output", tmp_path / "out", trained.directory)

    head, _, row = capsys.readouterr().out.splitlines()
    assert head.endswith("| dev | attacked |")
    found = json.loads((tmp_path / "out" / "readers.json").read_text())
    result = found["results"]["trained"]
    metrics = json.loads((trained.directory / "metrics.json").read_text())
    scores = result["scores"]
    for name in ("exact_match", "f1"):
        assert scores[name] == pytest.approx(metrics[name])
        # Nothing was attacked in a copy of dev.
        assert scores["attacked"][name] == pytest.approx(metrics[name])
    assert row.startswith(f"| trained | {result['parameters']:,} |")
    assert len(found["histories"]["trained"]["f1"]) == 3
    assert result["questions_per_second"] > 0
    assert result["latency_ms"] > 0
    assert (tmp_path / "out" / "readers.png").read_bytes()[:4] == b"\x89PNG"


def test_two_runs_of_one_name_are_refused(readers, trained, tmp_path, capsys):
    with pytest.raises(SystemExit) as exit:
        readers("--data", "x", "--output", tmp_path, trained.directory, "other/trained")
    assert exit.value.code == 2
    assert "two runs have the same name" in capsys.readouterr().err
