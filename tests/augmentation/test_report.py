"""Tests of qanet.augmentation.report."""

import pytest

from qanet.augmentation.augment import Augmented
from qanet.augmentation.paraphrase import COUNTS, MovedAnswer
from qanet.augmentation.report import SAMPLES, markdown, summary
from qanet.datasets.squad import Example, Span


@pytest.fixture
def result():
    counts = dict.fromkeys(COUNTS, 0) | {
        "contexts": 1000,
        "sentences": 4000,
        "sentences_unchanged": 7,
        "sentences_kept_length": 2,
        "sentences_kept_script": 1,
        "questions": 4,
        "answers_exact": 2,
        "answers_close": 1,
        "answers_dropped": 1,
    }
    moved = [
        MovedAnswer(
            "Who?", "Bo|x won.", Span("Bo", 0), "So Bo", 9, Span("Bo", 3), 1, True
        ),
        MovedAnswer(
            "A\nb?", "*It* fell", Span("fell", 5), "It rose", 0, None, 0.2, False
        ),
    ]
    example = Example("1", "Who?", "Bo", (Span("Bo", 0),))
    return Augmented([example] * 3, counts, 0.25, 10.0, moved, ("there", "back"))


def test_summary(result):
    text = "\n".join(summary(result))
    assert "1,000 contexts, 4,000 sentences" in text
    assert "7 sentences came back unchanged, 3 unusable" in text
    assert "(empty 0, length 2, numbers 0, script 1)" in text
    assert "mean edit distance 0.25" in text
    assert (
        "4 questions, 75.0% kept: 2 answers found word for word (50.0%), 1 by" in text
    )
    assert "1 not found and dropped" in text
    assert "without an answer" not in text


def test_questions_without_an_answer_are_told(result):
    result.counts |= {"questions": 10, "answers_none": 6}
    text = "\n".join(summary(result))
    assert "2 answers found word for word (50.0%)" in text
    assert "1 not found and dropped, 6 without an answer" in text


def test_samples_are_a_table_with_the_answers_in_bold(result):
    lines = markdown(result, "A title").splitlines()
    assert lines[0] == "# A title"
    assert lines[-2:] == [
        r"| 1.00 | Who? | **Bo**\|x won. | So **Bo** |",
        r"| 0.20 | A b? | \*It\* **fell** | It rose (dropped) |",
    ]


def test_samples_are_few(result):
    result.moved *= SAMPLES
    lines = markdown(result, "A title").splitlines()
    assert sum(line.startswith(("| 1.00", "| 0.20")) for line in lines) == SAMPLES
