"""Tests of benchmarks/articles.py."""

import json
import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "articles.py"


@pytest.fixture
def data(tmp_path):
    """Two articles of a few paragraphs; the first has three questions."""

    def paragraph(context, **answers):
        return {
            "context": context,
            "qas": [
                {
                    "id": id,
                    "question": f"Where is {id}?",
                    "answers": [{"text": text, "answer_start": context.index(text)}],
                }
                for id, text in answers.items()
            ],
        }

    articles = [
        [
            paragraph("Bo is in Rome.", Bo="Rome"),
            paragraph("Ann is in Oslo, Al in Bonn.", Ann="Oslo", Al="Bonn"),
        ],
        [paragraph("Di is in Bern.", Di="Bern")],
    ]
    path = tmp_path / "data.json"
    told = [{"title": str(i), "paragraphs": p} for i, p in enumerate(articles)]
    path.write_text(json.dumps({"version": "1.1", "data": told}))
    return path


def test_contexts_are_articles_and_answers_stand_in_them(data):
    on_articles = runpy.run_path(str(SCRIPT))["on_articles"]
    examples = on_articles(data, questions=2, seed=0)
    assert len(examples) == 3
    first = "Bo is in Rome.\n\nAnn is in Oslo, Al in Bonn."
    assert [example.context for example in examples] == [first] * 2 + ["Di is in Bern."]
    expected = {"Bo": "Rome", "Ann": "Oslo", "Al": "Bonn", "Di": "Bern"}
    for example in examples:
        (answer,) = example.answers
        assert answer.text == expected[example.id]
        end = answer.start + len(answer.text)
        assert example.context[answer.start : end] == answer.text
    drawn = {tuple(e.id for e in on_articles(data, 1, seed)) for seed in range(9)}
    assert drawn == {("Bo", "Di"), ("Ann", "Di"), ("Al", "Di")}


def test_command_compares_windows(data, tmp_path, monkeypatch, capsys):
    output = tmp_path / "articles.json"
    arguments = ["--data", str(data), "--windows", "9:6", "1000:750"]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments, "--output", str(output)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    count, *lines = capsys.readouterr().out.splitlines()
    assert count.startswith("3 questions")
    assert [line.partition(":")[0] for line in lines] == ["9 by 6", "1,000 by 750"]
    told = json.loads(output.read_text())
    assert [(row["window"], row["stride"]) for row in told["windows"]] == [
        (9, 6),
        (1000, 750),
    ]
    assert told["windows"][0]["same_as_first"] == 100
