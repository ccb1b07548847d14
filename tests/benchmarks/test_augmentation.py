"""Tests of benchmarks/augmentation.py, with words exchanged for a translation."""

import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from qanet.datasets.squad import Example, Span, write_squad
from qanet.translation.cache import TranslationCache

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "augmentation.py"


class Exchange:
    """Exchanges a word."""

    batch_size = 100

    def __init__(self, name):
        self.name = name

    def translate(self, sentences, count):
        old, new = self.name.split(">")
        return [[sentence.replace(old, new)] for sentence in sentences]


@pytest.fixture
def script(monkeypatch):
    main = runpy.run_path(str(SCRIPT))["main"]
    monkeypatch.setitem(main.__globals__, "open_translator", Exchange)
    return main.__globals__


@pytest.fixture
def squad(tmp_path):
    """Four passages: found word for word, found by likeness, and lost twice."""
    examples = []
    for i, answer in enumerate(["Bo", "red cats", "dogs", "dogs"]):
        context = f"Bo has {i} red cats and dogs"
        examples.append(
            Example(str(i), "?", context, (Span(answer, context.index(answer)),))
        )
    path = tmp_path / "train.json"
    write_squad(path, examples)
    return path


def test_shares_and_speed(script, squad, monkeypatch, tmp_path, capsys):
    output = tmp_path / "report.json"
    arguments = ["--train", squad, "--forward", "dogs>mice", "--backward", "cats>cat"]
    arguments = [str(argument) for argument in [*arguments, "--output", output]]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
    script["main"]()
    report = json.loads(output.read_text())
    assert report == json.loads(capsys.readouterr().out)
    assert report["translators"] == ["dogs>mice", "cats>cat"]
    assert report["sentences"] == report["questions"] == 4
    assert report["sentences_unchanged"] == report["sentences_kept_empty"] == 0
    assert report["sentences_per_second"] > 0
    assert report["edit_distance"] == pytest.approx(2 / 7, abs=1e-4)
    for matching in ("edges", "bigrams"):
        result = report[matching]
        assert result["exact_share"] == 0.25
        assert result["kept_share"]["0.8"] == 0.5


def test_the_reader_judges_what_it_knew(script, squad, tmp_path):
    """It is wrong on passage 3, and on the new words of passage 1."""

    old = {"0": "Bo", "1": "red cats", "2": "dogs", "3": "Bo"}
    new = old | {"1": "red"}

    def answer_many(pairs, top_k):
        contexts = [context for _, context in pairs]
        answers = [(new if "mice" in c else old)[c.split()[2]] for c in contexts]
        return [[SimpleNamespace(text=answer)] for answer in answers]

    reader = SimpleNamespace(answer_many=answer_many)
    read = script["passages"](script["read_squad"](squad).examples)
    cache = TranslationCache(tmp_path / "cache")
    result = script["measure"](read, "dogs>mice", "cats>cat", cache)["edges"]
    judged = script["judge"](reader, read, result)
    assert judged["exact"] == {"questions": 1, "f1": 1.0, "overlap": 1.0}
    (band,) = [name for name in judged if name not in ("exact", "from 0.0")]
    assert judged[band] == {"questions": 1, "f1": 0.667, "overlap": 1.0}
    assert judged["from 0.0"]["questions"] == 1
