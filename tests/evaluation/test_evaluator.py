"""Tests of qanet.evaluation.evaluator with a reader that knows the answers."""

import json

import numpy as np
import pytest

from qanet.config import load_preset
from qanet.datasets.features import build_features
from qanet.datasets.squad import Example, Span
from qanet.decoding import Answer
from qanet.evaluation import evaluator
from qanet.evaluation.evaluator import evaluate
from qanet.evaluation.metrics import squad_v2
from qanet.files import write_text


class KnowingReader:
    """Answers the gold answer, but to `wrong` ids something else."""

    config = load_preset("qanet-tiny")

    def __init__(self, wrong=()):
        self.wrong = wrong
        self.calls = []

    def read(self, examples, features, chosen=None, top_k=1, progress=None):
        self.calls.append((chosen, top_k, progress))
        answers = []
        for i in chosen:
            example = examples[i]
            text = "no such thing" if example.id in self.wrong else f"städte {i}"
            ranked = [Answer(text, 6, 6 + len(text), 0.75), Answer("die", 0, 3, 0.25)]
            answers.append(ranked[:top_k])
        return answers


class DoubtingReader(KnowingReader):
    """Says no answer with given probabilities; never decides."""

    config = load_preset("qanet-tiny", ["data.no_answer=true"])
    threshold = 0.5

    def __init__(self, probabilities):
        super().__init__()
        self.probabilities = probabilities

    def read(self, examples, features, chosen=None, top_k=1, progress=None):
        answers = super().read(examples, features, chosen, top_k, progress)
        ranked = [
            [*spans, Answer("", 0, 0, self.probabilities[i])]
            for i, spans in zip(chosen, answers, strict=True)
        ]
        return [sorted(some, key=lambda answer: -answer.score) for some in ranked]


class PartlyRightReader(DoubtingReader):
    """Answers questions with the same word, which is all of the first answer."""

    def __init__(self):
        super().__init__([0.1, 0.2, 0.3])

    def read(self, examples, features, chosen=None, top_k=1, progress=None):
        return [
            [Answer("städte", 4, 10, 0.5 - none), Answer("", 0, 0, none)]
            for none in self.probabilities
        ]


def data_set(count, impossible=()):
    examples = []
    for i in range(count):
        text = f"städte {i}"
        answers = () if i in impossible else (Span(text, 4),)
        context = f"die {text} und mehr"
        examples.append(
            Example(f"q{i}", "was?", context, answers, impossible=i in impossible)
        )
    return examples, build_features(examples)


def test_all_questions_are_counted():
    """Questions dropped by length filters were missing from the denominator."""
    examples, features = data_set(7)
    result = evaluate(KnowingReader(wrong={"q3"}), examples, features)
    assert result.metrics["total"] == 7
    assert result.metrics["exact_match"] == pytest.approx(100 * 6 / 7)
    assert result.metrics["f1"] == pytest.approx(100 * 6 / 7)
    assert list(result.answers) == [example.id for example in examples]


@pytest.mark.parametrize(
    ("total", "questions", "expected"),
    [
        (10, 5, [0, 2, 4, 6, 8]),
        (10, 3, [0, 3, 6]),
        (10, 10, list(range(10))),
        (10, 99, list(range(10))),
        (10, 0, list(range(10))),
        (10, 1, [0]),
    ],
)
def test_subset_is_spread_evenly(total, questions, expected):
    reader = KnowingReader()
    examples, features = data_set(total)
    result = evaluate(reader, examples, features, questions)
    ((chosen, _, _),) = reader.calls
    assert list(chosen) == expected
    assert result.metrics["total"] == len(expected)
    assert list(result.answers) == [f"q{i}" for i in expected]


def test_any_subset_is_spread_evenly():
    examples, features = data_set(23)
    for questions in range(1, 24):
        reader = KnowingReader()
        evaluate(reader, examples, features, questions)
        ((chosen, _, _),) = reader.calls
        assert len(chosen) == questions
        gaps = np.diff([*chosen, 23])
        assert gaps.min() >= 1
        assert gaps.max() - gaps.min() <= 1


def test_subset_is_scored_on_its_own():
    examples, features = data_set(10)
    wrong = {f"q{i}" for i in range(1, 10, 2)}
    assert evaluate(KnowingReader(wrong), examples, features, 5).metrics["f1"] == 100
    assert evaluate(KnowingReader(wrong), examples, features).metrics["f1"] == 50


def test_squad_2_is_scored_as_such():
    examples, features = data_set(4, impossible={2})
    metrics = evaluate(KnowingReader(), examples, features).metrics
    assert metrics["total"] == 4
    assert metrics["exact_match"] == metrics["exact"] == 75
    assert metrics["NoAns_total"] == 1


def test_options_reach_the_reader():
    reader = KnowingReader()
    examples, features = data_set(2)
    result = evaluate(reader, examples, features, top_k=2, progress="reading")
    assert reader.calls[0][1:] == (2, "reading")
    assert [answer.text for answer in result.answers["q1"]] == ["städte 1", "die"]


def test_files_are_written(tmp_path):
    examples, features = data_set(3)
    result = evaluate(KnowingReader({"q1"}), examples, features, top_k=2)
    directory = tmp_path / "made" / "evaluation"
    result.save(directory, {"data": "dev.json"})
    assert sorted(path.name for path in directory.iterdir()) == [
        "metrics.json",
        "nbest.json",
        "predictions.json",
    ]

    def read(name):
        return json.loads((directory / name).read_text(encoding="utf-8"))

    assert read("predictions.json") == {
        "q0": "städte 0",
        "q1": "no such thing",
        "q2": "städte 2",
    }
    nbest = read("nbest.json")
    assert nbest.keys() == {"q0", "q1", "q2"}
    assert nbest["q0"] == [
        {"text": "städte 0", "start": 6, "end": 14, "score": 0.75},
        {"text": "die", "start": 0, "end": 3, "score": 0.25},
    ]
    assert read("metrics.json") == {"data": "dev.json", **result.metrics}
    assert "städte" in (directory / "predictions.json").read_text(encoding="utf-8")


def test_the_first_file_tells_what_they_are(tmp_path, monkeypatch):
    examples, features = data_set(2)
    result = evaluate(KnowingReader(), examples, features)

    def stopped(path, text):
        if path.name != "metrics.json":
            raise KeyboardInterrupt
        write_text(path, text)

    monkeypatch.setattr(evaluator, "write_text", stopped)
    with pytest.raises(KeyboardInterrupt):
        result.save(tmp_path, {"data": "dev.json"})
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.json"]


def test_files_take_the_place_of_older_ones(tmp_path):
    examples, features = data_set(2)
    for reader in (KnowingReader(), KnowingReader({"q0"})):
        evaluate(reader, examples, features).save(tmp_path, {"data": "dev.json"})
    predictions = json.loads((tmp_path / "predictions.json").read_text())
    assert predictions["q0"] == "no such thing"
    assert len(list(tmp_path.iterdir())) == 3


def test_files_that_only_a_former_evaluation_has_are_removed(tmp_path):
    for name in ("na_prob.json", "report.json", "report.png", "notes.txt"):
        (tmp_path / name).write_text("{}")
    examples, features = data_set(2)
    evaluate(KnowingReader(), examples, features).save(tmp_path, {"data": "dev.json"})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "metrics.json",
        "nbest.json",
        "notes.txt",
        "predictions.json",
    ]


def test_no_answer_is_decided_by_the_readers_threshold():
    examples, features = data_set(4, impossible={1, 3})
    reader = DoubtingReader([0.1, 0.9, 0.6, 0.4])
    result = evaluate(reader, examples, features, top_k=2)
    # Doubts too much of the third and too little of the fourth.
    assert [result.answers[f"q{i}"][0].text for i in range(4)] == [
        "städte 0",
        "",
        "",
        "städte 3",
    ]
    assert [len(answers) for answers in result.answers.values()] == [2] * 4
    assert result.metrics["exact"] == 50
    assert result.metrics["threshold"] == 0.5
    assert result.no_answer == {"q0": 0.1, "q1": 0.9, "q2": 0.6, "q3": 0.4}


def test_the_threshold_with_the_best_f1_can_be_chosen():
    examples, features = data_set(4, impossible={1, 3})
    # Of the third it doubts more than any span says; still the answers pay.
    reader = DoubtingReader([0.1, 0.9, 0.8, 0.95])
    result = evaluate(reader, examples, features, choose_threshold=True)
    assert result.metrics["threshold"] == 0.8
    assert result.metrics["exact"] == result.metrics["f1"] == 100
    texts = [answers[0].text for answers in result.answers.values()]
    assert texts == ["städte 0", "", "städte 2", ""]
    # What was chosen is what the official scores call best.
    spans = {f"q{i}": f"städte {i}" for i in range(4)}
    official = squad_v2(examples, spans, result.no_answer)
    assert official["best_f1"] == 100
    assert official["best_f1_thresh"] == 0.8


@pytest.mark.parametrize("impossible", [set(), {0, 1, 2, 3}])
def test_questions_of_one_kind_choose_no_threshold(impossible):
    """Of all thresholds, the highest or the lowest would be best for them."""
    examples, features = data_set(4, impossible=impossible)
    reader = DoubtingReader([0.1, 0.9, 0.6, 0.4])
    result = evaluate(reader, examples, features, choose_threshold=True)
    assert result.metrics["threshold"] == 0.5


def test_probabilities_of_no_answer_are_written(tmp_path):
    examples, features = data_set(2)
    evaluate(DoubtingReader([0.25, 0.5]), examples, features).save(
        tmp_path, {"data": "dev.json"}
    )
    written = json.loads((tmp_path / "na_prob.json").read_text())
    assert written == {"q0": 0.25, "q1": 0.5}


def test_the_threshold_is_that_of_f1():
    """That of exact match would be the lower one: no answer counts as all of it."""
    context = "die städte 1 und mehr"
    golds = Span("städte", 4), Span("städte 1", 4)
    examples = [Example(gold.text, "was?", context, (gold,)) for gold in golds]
    examples.append(Example("none", "was?", context, (), impossible=True))
    features = build_features(examples)
    result = evaluate(PartlyRightReader(), examples, features, choose_threshold=True)
    assert result.metrics["threshold"] == 0.2
