"""Tests of benchmarks/endurance.py."""

import json
import runpy
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def endurance(monkeypatch):
    """Runs the benchmark with parts in the place of its own."""
    script = runpy.run_path(str(BENCHMARKS / "endurance.py"))
    finding = sys.modules["enduring.findings"].Finding

    def run(*arguments):
        parts = {
            "whole": lambda seed: [finding("runs", 3, remark=f"seed {seed}")],
            "broken": lambda seed: [finding("texts", 2, ["text 1: lost"])],
        }
        script["PARTS"].clear()
        script["PARTS"].update(parts)
        monkeypatch.setattr(sys, "argv", ["endurance.py", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            script["main"]()
        return ended.value.code

    return run


def test_all_parts_are_run_and_what_is_wrong_is_told(endurance, capsys, tmp_path):
    output = tmp_path / "endurance.json"

    assert endurance("--output", output) == 1

    printed = capsys.readouterr().out
    assert "| runs | 3 | 0 | seed 0 |" in printed
    assert "| texts | 2 | 1 |  |\n  wrong: text 1: lost" in printed
    told = json.loads(output.read_text())
    assert list(told) == ["whole", "broken"]
    assert told["broken"]["rows"][0]["wrong"] == ["text 1: lost"]


def test_one_part_alone(endurance, capsys):
    assert endurance("whole", "--seed", 5) == 0
    printed = capsys.readouterr().out
    assert "seed 5" in printed
    assert "texts" not in printed


def test_an_unknown_part(endurance, capsys):
    assert endurance("hole") == 2
    assert "there is no part hole; choose of whole, broken" in capsys.readouterr().err
