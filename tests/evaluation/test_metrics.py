"""Tests of qanet.evaluation.metrics.

Expected values are worked out by hand from the definition of the official scripts.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qanet.datasets.squad import Example, Span
from qanet.errors import UserError
from qanet.evaluation.metrics import (
    exact_match_score,
    f1_score,
    normalize_answer,
    read_predictions,
    score,
    squad_v1,
    squad_v2,
)


def example(identifier, *golds):
    """An example with these gold answers, impossible where there are none."""
    answers = tuple(Span(gold, -1) for gold in golds)
    return Example(identifier, "Who?", "context", answers, impossible=not golds)


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("The Eiffel Tower", "eiffel tower"),
        ("a cat, an owl and the dog.", "cat owl and dog"),
        ("theatre and anthem", "theatre and anthem"),
        ("  two \t words\n", "two words"),
        ("two\u00a0words", "two words"),
        ("$3.5-million (US)", "35million us"),
        # Punctuation goes first and leaves no blank: what it parted becomes one word.
        ("the-dog", "thedog"),
        ("A.N.", ""),
        # Only ASCII punctuation goes.
        ("1990–1991", "1990–1991"),
        ("“quoted”", "“quoted”"),
        # An article ends at any character that is not a letter, digit or underscore.
        ("the–end", "–end"),
        ("x–a–y", "x– –y"),
        ("ÉCOLE", "école"),
        ("thé", "thé"),
        ("北京", "北京"),
        ("the", ""),
        ("", ""),
        ("?!", ""),
        # No letter, of whatever script, ends a word before an article.
        ("María", "maría"),
        # In lower case, not folded.
        ("Straße", "straße"),
    ],
)
def test_normalize_answer(text, normalized):
    assert normalize_answer(text) == normalized


@given(st.text())
def test_normalized_text_has_single_blanks_and_no_articles(text):
    words = normalize_answer(text).split(" ")

    assert words == [""] or all(words)
    assert not {"a", "an", "the"} & set(words)


@pytest.mark.parametrize(
    ("prediction", "golds", "exact", "f1"),
    [
        ("Denver Broncos", ["denver broncos"], 1, 1),
        ("The Denver Broncos!", ["Denver Broncos"], 1, 1),
        ("Broncos", ["Denver Broncos"], 0, 2 / 3),
        ("Broncos Denver", ["Denver Broncos"], 0, 1),
        ("Paris", ["Denver Broncos"], 0, 0),
        ("", ["Denver Broncos"], 0, 0),
        # The best gold counts, wherever it stands.
        ("in Denver", ["Paris", "in Denver", "Denver"], 1, 1),
        ("Denver", ["in Denver", "Denver Broncos team"], 0, 2 / 3),
        # A word counts as often as both have it: common 2, of 3 and of 2.
        ("that that that", ["that that"], 0, 4 / 5),
        ("1990–1991", ["1990-1991"], 0, 0),
        ("CAFÉ", ["café"], 1, 1),
        # Nothing is left of either: an exact match, but no token in common.
        (".", ["$"], 1, 0),
        ("", ["the"], 1, 0),
    ],
)
def test_exact_match_and_f1(prediction, golds, exact, f1):
    assert exact_match_score(prediction, golds) == exact
    assert f1_score(prediction, golds) == pytest.approx(f1)


@given(st.text(), st.lists(st.text(), min_size=1))
def test_scores_lie_between_zero_and_one(prediction, golds):
    assert exact_match_score(prediction, golds) in (0.0, 1.0)
    assert 0.0 <= f1_score(prediction, golds) <= 1.0


def test_squad_v1_in_percent():
    examples = [example("1", "blue"), example("2", "New York"), example("3", "red")]
    predictions = {"1": "the blue", "2": "York", "3": "green", "unknown": "red"}

    assert squad_v1(examples, predictions) == {
        "exact_match": pytest.approx(100 / 3),
        "f1": pytest.approx(100 * (1 + 2 / 3) / 3),
        "total": 3,
    }


@pytest.mark.parametrize("metric", [squad_v1, squad_v2])
def test_questions_missing_from_the_denominator(metric):
    examples = [example("1", "blue"), example("2", "red"), example("3", "green")]

    scores = metric(examples, {"1": "blue"})

    assert scores["total"] == 3
    assert scores["exact_match"] == pytest.approx(100 / 3)
    assert scores["f1"] == pytest.approx(100 / 3)


@pytest.mark.parametrize("metric", [squad_v1, squad_v2])
def test_any_gold_answer_counts(metric):
    scores = metric([example("1", "navy", "dark blue")], {"1": "dark blue"})
    assert (scores["exact_match"], scores["f1"]) == (100.0, 100.0)


def test_missing_prediction_is_not_an_empty_prediction():
    examples = [example("1"), example("2")]

    scores = squad_v2(examples, {"1": ""}, {"1": 0.9, "2": 0.9}, threshold=0.5)

    assert scores["exact"] == scores["best_exact"] == 50.0
    assert scores["f1"] == scores["best_f1"] == 50.0


def test_squad_v2_by_kind_of_question():
    examples = [example("1", "blue"), example("2", "New York"), example("3")]
    examples += [example("4"), example("5")]
    predictions = {"1": "blue", "2": "York", "3": "", "4": "red", "5": "the"}

    assert squad_v2(examples, predictions) == {
        "exact_match": pytest.approx(60.0),
        "exact": pytest.approx(60.0),
        "f1": pytest.approx(100 * (1 + 2 / 3 + 2) / 5),
        "total": 5,
        "HasAns_exact": pytest.approx(50.0),
        "HasAns_f1": pytest.approx(100 * (1 + 2 / 3) / 2),
        "HasAns_total": 2,
        "NoAns_exact": pytest.approx(200 / 3),
        "NoAns_f1": pytest.approx(200 / 3),
        "NoAns_total": 3,
    }


def test_squad_v2_leaves_out_a_kind_that_does_not_occur():
    assert "NoAns_total" not in squad_v2([example("1", "blue")], {})
    assert "HasAns_total" not in squad_v2([example("1")], {})


def test_squad_v2_ignores_golds_that_normalise_to_nothing():
    with_another = squad_v2([example("1", ".", "blue")], {"1": ""})
    alone = squad_v2([example("1", ".")], {"1": ""})

    assert (with_another["exact"], with_another["f1"]) == (0.0, 0.0)
    assert (alone["HasAns_exact"], alone["HasAns_f1"]) == (100.0, 100.0)


def test_probability_above_the_threshold_empties_the_prediction():
    examples = [example("1", "blue"), example("2", "red"), example("3"), example("4")]
    predictions = {"1": "blue", "2": "red", "3": "green", "4": "green"}
    probabilities = {"1": 0.5, "2": 0.6, "3": 0.5, "4": 0.6}

    scores = squad_v2(examples, predictions, probabilities, threshold=0.5)

    # At 0.5 itself the prediction stands; above it 2 loses and 4 gains.
    assert scores["HasAns_exact"] == scores["NoAns_exact"] == 50.0
    assert squad_v2(examples, predictions, probabilities)["HasAns_exact"] == 100.0


def test_best_thresholds():
    examples = [example("1", "blue"), example("2", "New York"), example("3")]
    examples += [example("4", "red"), example("5")]
    predictions = {"1": "blue", "2": "York", "3": "x", "4": "red", "5": ""}
    probabilities = {"1": 0.1, "2": 0.2, "3": 0.3, "4": 0.4, "5": 0.5}

    scores = squad_v2(examples, predictions, probabilities)

    # Sums at the thresholds 0, 0.1, ... 0.5, of exact match: 2 3 3 2 3 3,
    # and of F1: 2 3 3⅔ 2⅔ 3⅔ 3⅔.
    assert scores["best_exact"] == pytest.approx(60.0)
    assert scores["best_exact_thresh"] == 0.1
    assert scores["best_f1"] == pytest.approx(100 * (3 + 2 / 3) / 5)
    assert scores["best_f1_thresh"] == 0.2
    # They do not depend on the threshold that is used.
    assert squad_v2(examples, predictions, probabilities, 0.0)["best_exact"] == 60.0


def test_equal_probabilities_count_one_by_one():
    examples = [example("1", "blue"), example("2")]
    predictions = {"1": "blue", "2": "y"}
    for order, best in (("12", 100.0), ("21", 50.0)):
        scores = squad_v2(examples, predictions, dict.fromkeys(order, 0.5))
        assert scores["best_exact"] == best


def test_best_threshold_where_never_answering_is_best():
    examples = [example("1", "blue"), example("2")]

    scores = squad_v2(examples, {"1": "x", "2": "y"}, {"1": 0.7, "2": 0.8})

    assert (scores["best_exact"], scores["best_exact_thresh"]) == (50.0, 0.0)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([(), ("blue",), ("dark blue", "navy")]),
            st.sampled_from(["", "blue", "navy", "red"]),
        ),
        min_size=1,
        max_size=8,
    ),
    st.randoms(use_true_random=False),
)
def test_best_scores_are_what_the_best_thresholds_give(rows, random):
    examples = [example(str(i), *golds) for i, (golds, _) in enumerate(rows)]
    predictions = {str(i): prediction for i, (_, prediction) in enumerate(rows)}
    levels = [(i + 1) / 10 for i in range(len(rows))]
    random.shuffle(levels)
    probabilities = dict(zip(predictions, levels, strict=True))

    def at(threshold):
        return squad_v2(examples, predictions, probabilities, threshold)

    for name in ("exact", "f1"):
        best = at(1.0)[f"best_{name}"]
        every_threshold = [at(threshold)[name] for threshold in [0.0, *levels]]
        assert best == pytest.approx(max(every_threshold))
        assert at(at(1.0)[f"best_{name}_thresh"])[name] == pytest.approx(best)


def test_score_picks_the_evaluation_by_the_examples():
    answerable, impossible = example("1", "blue"), example("2")
    predictions = {"1": "blue", "2": ""}

    assert score([answerable], predictions) == squad_v1([answerable], predictions)
    both = [answerable, impossible]
    assert score(both, predictions) == squad_v2(both, predictions)
    assert {"exact_match", "f1", "total"} <= score(both, predictions).keys()


def test_read_predictions(tmp_path):
    path = tmp_path / "predictions.json"
    path.write_text('{"1": "blé", "2": ""}', encoding="utf-8")

    assert read_predictions(path) == {"1": "blé", "2": ""}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([], "must be an object of answer texts by question id"),
        ({"1": "blue", "2": None}, "the answer to '2' must be a string"),
    ],
)
def test_malformed_predictions(tmp_path, content, problem):
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(content), encoding="utf-8")

    with pytest.raises(UserError) as error:
        read_predictions(path)

    assert str(error.value) == f"{path}: {problem}"


def test_missing_predictions(tmp_path):
    with pytest.raises(UserError, match=r"none\.json: cannot be read"):
        read_predictions(tmp_path / "none.json")


def test_a_prediction_that_is_not_empty_loses_at_the_best_threshold():
    """Even where nothing is left of it: so does the official script."""
    scores = squad_v2(
        [example("1"), example("2", "blue")],
        {"1": "the", "2": "blue"},
        {"1": 0.1, "2": 0.2},
    )
    assert (scores["best_exact"], scores["best_exact_thresh"]) == (50.0, 0.0)
