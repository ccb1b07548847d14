"""Tests of qanet.augmentation.filtering."""

from types import SimpleNamespace

import pytest

from qanet.augmentation import filtering
from qanet.augmentation.filtering import agrees, answered
from qanet.datasets.squad import Example, Span
from qanet.decoding import Answer
from qanet.errors import UserError
from qanet.text.tokenizer import words_of

CONTEXT = "Zoë lives in the town of Rome, Bo in Oslo."


def asked(id, *answers, impossible=False):
    spans = tuple(Span(text, CONTEXT.index(text)) for text in answers)
    return Example(id, "Where?", CONTEXT, spans, impossible=impossible)


def said(text, score=0.6):
    return Answer(text, 0, len(text), score)


class Fixed:
    """A reader whose answers are given by the questions' ids."""

    threshold = 0.5
    vocabulary = SimpleNamespace(tokens=words_of)

    def __init__(self, answers, no_answer=False):
        self.answers = answers
        self.config = SimpleNamespace(data=SimpleNamespace(no_answer=no_answer))

    def check_questions(self, examples):
        pass

    def read(self, examples, features):
        assert len(features) == len(examples)
        return [self.answers[example.id] for example in examples]


def test_questions_answered_rightly_are_kept_in_their_order():
    examples = [asked("c", "Rome"), asked("a", "Oslo"), asked("b", "Rome", "Oslo")]
    reader = Fixed({"a": [said("Rome")], "b": [said("Oslo")], "c": [said("Rome.")]})
    assert answered(reader, examples, 1.0) == [examples[0], examples[2]]


@pytest.mark.parametrize(("least", "kept"), [(0.4, True), (0.5, True), (0.51, False)])
def test_the_least_f1(least, kept):
    # One of three words: precision 1/3, recall 1.
    assert agrees(asked("a", "Rome"), said("town of Rome"), least) is kept


def test_an_answer_without_a_letter_is_right_where_it_is_the_same():
    example = Example("a", "What?", "$", (Span("$", 0),))
    assert agrees(example, said("$"), 1.0)
    for other in ("+", "Rome", ""):
        assert not agrees(example, said(other), 0.5)


def test_no_answer_is_right_where_there_is_none():
    none = [said("", 0.9), said("Rome", 0.1)]
    some = [said("Rome", 0.7), said("", 0.3)]
    examples = [
        asked("a", impossible=True),
        asked("b", impossible=True),
        asked("c", "Rome"),
    ]
    reader = Fixed({"a": none, "b": some, "c": none}, no_answer=True)
    assert answered(reader, examples, 0.5) == [examples[0]]


def test_a_reader_that_cannot_say_no_answer_is_refused():
    with pytest.raises(UserError, match=r"data\.no_answer"):
        answered(Fixed({}), [asked("a", impossible=True)], 0.5)


def test_a_question_whose_answer_was_not_found_in_its_context_is_left_out():
    assert not agrees(asked("a"), said("Rome"), 0.5)


def test_a_reader_that_cannot_say_no_answer_is_refused_for_one_question():
    examples = [asked("a", "Rome"), asked("b", impossible=True)]
    with pytest.raises(UserError, match=r"data\.no_answer"):
        answered(Fixed({}), examples, 0.5)


def test_questions_that_are_too_long_are_told_before_any_is_read():
    class Refusing(Fixed):
        def check_questions(self, examples):
            raise UserError(f"{examples[-1].id} is too long")

    with pytest.raises(UserError, match="b is too long"):
        answered(Refusing({}), [asked("a", "Rome"), asked("b", "Rome")], 0.5)


def test_the_threshold_decides_what_the_answer_is():
    ranked = [said("", 0.45), said("Rome", 0.4)]
    reader = Fixed({"a": ranked}, no_answer=True)
    assert answered(reader, [asked("a", "Rome")], 0.5) == [asked("a", "Rome")]
    reader.threshold = 0.4
    assert answered(reader, [asked("a", "Rome")], 0.5) == []


def test_questions_are_read_in_parts(monkeypatch):
    monkeypatch.setattr(filtering, "PART", 2)
    examples = [asked(str(i), "Rome") for i in range(5)]
    reader = Fixed({example.id: [said("Rome")] for example in examples})
    assert answered(reader, examples, 1.0) == examples
