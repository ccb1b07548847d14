"""Tests of benchmarks/adversarial.py."""

import json
import runpy
import sys
from pathlib import Path

import pytest

from qanet.datasets.squad import Example, Span, write_squad

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "adversarial.py"
CONTEXT = "Zoë lives in Rome. Bo lives in old Oslo."
EXAMPLES = [
    Example(id, "Where?", CONTEXT, (Span(answer, CONTEXT.index(answer)),))
    for id, answer in [
        ("attacked", "Rome"),
        ("attacked-high-1", "Rome"),
        ("attacked-high-2", "Rome"),
        ("alone", "old Oslo"),
        ("left out", "Rome"),
    ]
]
PREDICTIONS = {
    "attacked": "Rome",
    "attacked-high-1": "Oslo",
    "attacked-high-2": "Rome",
    "alone": "Oslo",
}


def scores(examples, predictions):
    return runpy.run_path(str(SCRIPT))["adversarial_scores"](examples, predictions)


def test_the_adversary_gets_the_worst_copy_and_the_rest_counts_as_it_is():
    # F1: 0 under attack (1 without), 2/3 for half an answer, 0 for none.
    assert scores(EXAMPLES, PREDICTIONS) == {
        "exact_match": 0.0,
        "f1": pytest.approx(100 * 2 / 3 / 3),
        "original_exact_match": pytest.approx(100 / 3),
        "original_f1": pytest.approx(100 * (1 + 2 / 3) / 3),
        "total": 3,
    }


def test_the_worst_copy_counts_also_where_the_original_is_worse():
    predictions = PREDICTIONS | {"attacked": "Oslo", "attacked-high-1": "Rome"}
    result = scores(EXAMPLES[:4], predictions)
    assert result["exact_match"] == 50.0
    assert result["original_exact_match"] == 0.0


def test_command_prints_one_line(tmp_path, monkeypatch, capsys):
    data, predictions = tmp_path / "data.json", tmp_path / "predictions.json"
    write_squad(data, EXAMPLES)
    predictions.write_text(json.dumps(PREDICTIONS), encoding="utf-8")
    arguments = ["--data", str(data), "--predictions", str(predictions)]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["total"] == 3
