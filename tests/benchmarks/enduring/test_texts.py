"""Tests of benchmarks/enduring/texts.py, with forms that are made up."""

import numpy as np
import pytest
from enduring import texts

from qanet.decoding import Answer
from qanet.text.tokenizer import count_tokens

CONTEXT = "Zoe\u0308 👩‍👩‍👧 東京"


def giving(*answers):
    return lambda question, context, top_k: list(answers)


WHOLE = Answer(CONTEXT, 0, len(CONTEXT), 0.6)
FIRST = Answer("Zoe\u0308", 0, 4, 0.3)


def wrong(**answering):
    return texts.compare("texts", [(CONTEXT, "Who?")], answering).wrong


def test_equal_answers_at_their_place_are_right():
    same = giving(WHOLE, FIRST)
    finding = texts.compare("x", [(CONTEXT, "Who?")] * 3, {"Keras": same, "ONNX": same})
    assert (finding.what, finding.tries, finding.wrong) == ("x", 3, [])


def test_a_text_that_is_not_at_its_place_is_wrong():
    moved = Answer("Zoe\u0308", 1, 5, 0.3)
    (line,) = wrong(Keras=giving(WHOLE, moved))
    assert line.startswith("text 0, Keras: ")


@pytest.mark.parametrize(
    "other",
    [
        [],
        # Another span.
        [FIRST, WHOLE],
        # The same, as sure as another answer would be.
        [Answer(CONTEXT, 0, len(CONTEXT), 0.5)],
    ],
)
def test_another_answer_is_wrong(other):
    (line,) = wrong(Keras=giving(WHOLE, FIRST), ONNX=giving(*other))
    assert line.startswith("text 0: ONNX answers ")


def test_two_nearly_equal_spans_may_change_places():
    near = Answer("Zoe\u0308", 0, 4, 0.599)
    assert wrong(Keras=giving(WHOLE, near), ONNX=giving(near, WHOLE)) == []


def test_no_answer_is_to_be_given_by_all():
    assert wrong(Keras=giving(), ONNX=giving()) == []


def test_texts_are_drawn_and_hold_what_they_are_to_hold():
    for parts in texts.KINDS.values():
        rng = np.random.default_rng(3)
        drawn = [texts.text(rng, parts, 60) for _ in range(20)]
        again = np.random.default_rng(3)
        assert drawn == [texts.text(again, parts, 60) for _ in range(20)]
        assert all(map(count_tokens, drawn))
        assert all(any(part in one for one in drawn) for part in parts)
