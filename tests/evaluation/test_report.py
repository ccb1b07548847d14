"""Tests of qanet.evaluation.report."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qanet.datasets.squad import Example, Span
from qanet.evaluation.metrics import score
from qanet.evaluation.report import (
    GROUPS,
    Report,
    Scores,
    break_down,
    groups_of,
    question_word,
    table,
)


def example(*golds, question="Who?", context="context", identifier="1"):
    """An example with these gold answers, impossible where there are none."""
    answers = tuple(Span(gold, -1) for gold in golds)
    return Example(identifier, question, context, answers, impossible=not golds)


def words(count):
    return " ".join(["word"] * count)


QUESTION_WORDS = ["Who", "WHOSE", "what", "in", "How", "many", "much", "long", "'", ""]
# With \u200b a text is not blank, and yet has no token.
GOLDS = ["blue", "dark blue", "the", ".", "\u200b", words(3), words(12)]
PREDICTIONS = ["blue", "the blue", "word", ".", "", None]


@st.composite
def data_sets(draw):
    """Examples, and predictions for some of them."""
    examples, predictions = [], {}
    for number in range(draw(st.integers(1, 10))):
        identifier = str(number)
        asked = draw(st.lists(st.sampled_from(QUESTION_WORDS), max_size=4))
        golds = draw(st.lists(st.sampled_from(GOLDS), max_size=3))
        context = words(draw(st.sampled_from([0, 1, 100, 101, 400])))
        examples.append(
            example(
                *golds,
                question=" ".join(asked),
                context=context,
                identifier=identifier,
            )
        )
        prediction = draw(st.sampled_from(PREDICTIONS))
        if prediction is not None:
            predictions[identifier] = prediction
    return examples, predictions


@pytest.mark.parametrize(
    ("question", "group"),
    [
        ("Who built it?", "who"),
        ("To whom was it given?", "who"),
        ("Whose bridge is it?", "who"),
        ("WHAT is it?", "what"),
        ("What's it called?", "what"),
        ("In what year was it built?", "what"),
        ("In which town?", "which"),
        ("When?", "when"),
        ("Where is it?", "where"),
        ("“Why?” was whose question?", "why"),
        ("How long is it?", "how"),
        ("How many are there?", "how many/much"),
        ("For HOW MUCH was it sold?", "how many/much"),
        # The first one counts, and "many" only right behind "how".
        ("When it was built, what stood there?", "when"),
        ("How did many of them die?", "how"),
        ("So many; how?", "how"),
        # Only whole words.
        ("Is it somewhat whole?", "other"),
        ("Whatever", "other"),
        ("¿?", "other"),
        # At the end.
        *(("It was built by whom", "who"), ("why", "why"), ("It was built how", "how")),
    ],
)
def test_question_word(question, group):
    assert question_word(question) == group


@pytest.mark.parametrize(
    ("tokens", "group"),
    [
        *((1, "1"), (2, "2"), (3, "3-4"), (4, "3-4"), (5, "5-8"), (8, "5-8")),
        *((9, "9+"), (1000, "9+")),
    ],
)
def test_groups_of_answers(tokens, group):
    assert groups_of(example(words(tokens)))["answer_tokens"] == group


def test_the_first_gold_answer_counts_and_its_punctuation_marks_do():
    golds = ("$3.50", "four", "it was $3.50 then")
    assert groups_of(example(*golds))["answer_tokens"] == "3-4"
    assert groups_of(example())["answer_tokens"] == "no answer"
    # No token at all.
    assert groups_of(example("\u200b"))["answer_tokens"] == "1"


@pytest.mark.parametrize(
    ("tokens", "group"),
    [
        *((1, "up to 100"), (100, "up to 100"), (101, "101-150"), (150, "101-150")),
        *((151, "151-200"), (200, "151-200"), (201, "201-300"), (300, "201-300")),
        *((301, "301+"), (5000, "301+")),
    ],
)
def test_groups_of_contexts(tokens, group):
    assert groups_of(example(context=words(tokens)))["context_tokens"] == group


@given(data_sets())
def test_every_question_is_in_one_group_of_each_kind(data):
    examples, predictions = data

    report = break_down(examples, predictions)

    assert list(report.groups) == list(GROUPS)
    for kind, groups in report.groups.items():
        # In the order of `GROUPS`, without the empty ones.
        assert list(groups) == [name for name in GROUPS[kind] if name in groups]
        counts = {name: scores.questions for name, scores in groups.items()}
        expected = [groups_of(example)[kind] for example in examples]
        assert counts == {name: expected.count(name) for name in expected}


@given(data_sets())
def test_the_weighted_mean_of_the_groups_is_the_official_score(data):
    examples, predictions = data
    official = score(examples, predictions)

    report = break_down(examples, predictions)

    assert report.all == Scores(
        official["total"], official["exact_match"], official["f1"]
    )
    for groups in report.groups.values():
        for name in ("exact_match", "f1"):
            total = sum(s.questions * getattr(s, name) for s in groups.values())
            assert total / len(examples) == pytest.approx(official[name])


def test_each_group_has_its_own_scores():
    examples = [
        example("New York", question="Where?", identifier="1"),
        example("blue", question="Which?", identifier="2"),
        example(question="Which?", context=words(101), identifier="3"),
        example(question="Which?", context=words(101), identifier="4"),
    ]

    # The last has no prediction.
    report = break_down(examples, {"1": "York", "2": "the blue", "3": ""})

    third = pytest.approx(200 / 3)
    assert report.groups == {
        "question_word": {
            "which": Scores(3, third, third),
            "where": Scores(1, 0.0, third),
        },
        "answer_tokens": {
            "1": Scores(1, 100.0, 100.0),
            "2": Scores(1, 0.0, third),
            "no answer": Scores(2, 50.0, 50.0),
        },
        "context_tokens": {
            "up to 100": Scores(2, 50.0, pytest.approx((100 + 200 / 3) / 2)),
            "101-150": Scores(2, 50.0, 50.0),
        },
    }
    assert report.all == Scores(4, 50.0, pytest.approx((200 + 200 / 3) / 4))


REPORT = Report(
    Scores(12345, 100.0, 100.0),
    {
        "question_word": {
            "how many/much": Scores(12340, 62.25, 100.0),
            "other": Scores(5, 0.0, 1 / 3),
        },
        "answer_tokens": {"9+": Scores(12345, 100.0, 100.0)},
    },
)


def test_table():
    assert table(REPORT) == [
        "                  questions  exact match     F1",
        "all                  12,345        100.0  100.0",
        "question word",
        "  how many/much      12,340         62.2  100.0",
        "  other                   5          0.0    0.3",
        "answer tokens",
        "  9+                 12,345        100.0  100.0",
    ]


def test_names_of_all_groups_fit_into_the_table():
    scores = Scores(1, 0.0, 0.0)
    report = Report(scores, {k: dict.fromkeys(g, scores) for k, g in GROUPS.items()})

    rows = [line for line in table(report) if line.endswith("0.0")]

    assert len(rows) == 1 + sum(map(len, GROUPS.values()))
    assert len({len(row) for row in rows}) == 1


def test_saved_report(tmp_path):
    REPORT.save(tmp_path / "new", {"data": "dev.json"})

    content = json.loads((tmp_path / "new" / "report.json").read_text("utf-8"))
    assert list(content) == ["data", "all", "question_word", "answer_tokens"]
    assert content["data"] == "dev.json"
    assert content["all"] == {"questions": 12345, "exact_match": 100.0, "f1": 100.0}
    assert list(content["question_word"]) == ["how many/much", "other"]
    assert content["question_word"]["other"]["f1"] == 1 / 3
