"""Tests of qanet.serving.limits and of the hard bounds of messages."""

import pytest
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from qanet.serving import messages
from qanet.serving.limits import (
    Limits,
    check_explained,
    check_limits,
)
from qanet.serving.messages import Asked, Question
from qanet.text.pieces import SPECIAL, WordPieces


def test_a_question_costs_the_readers_own_tokens():
    pieces = WordPieces([*SPECIAL, "a", "##a"])
    question = Question(questions=["a", "aa"], passages=["a" * 99, "a a"])
    # Of words there would be 5 for each.
    assert check_limits(question, Limits(), pieces) == [103, 105]
    with pytest.raises(HTTPException, match="passages: more than 207 word pieces"):
        check_limits(question, Limits(tokens=207), pieces)
    asked = Asked(question="aa", passage="a" * 99)
    check_explained(asked, Limits(question_tokens=2, explained_tokens=99), pieces)
    with pytest.raises(HTTPException, match="passage: more than 98 word pieces"):
        check_explained(asked, Limits(explained_tokens=98), pieces)
    # A word may have no piece.
    nothing = {"question": "\ue000", "passage": "a"}
    with pytest.raises(HTTPException, match="question: is blank"):
        check_explained(Asked(**nothing), Limits(), pieces)
    question = Question(questions=["a", "\ue000"], passages=["a"])
    with pytest.raises(HTTPException, match=r"questions\.1: is blank"):
        check_limits(question, Limits(), pieces)


def test_what_is_far_too_long_is_not_counted_to_its_end(monkeypatch):
    pieces, looked_at = WordPieces([*SPECIAL, "a"]), []

    def noted(text):
        looked_at.append(len(text))
        return encode(text)

    encode = pieces._encode
    monkeypatch.setattr(pieces, "_encode", noted)
    question = Question(questions=["a"], passages=["a " * 500_000] * 2)
    with pytest.raises(HTTPException, match="more than 9000 word pieces"):
        check_limits(question, Limits(tokens=9000), pieces)
    assert sum(looked_at) < 30_000


def test_what_is_too_much_is_not_looked_at_text_by_text(monkeypatch):
    question = Question(questions=["a"] * 100, passages=["a"])
    with pytest.raises(HTTPException, match="questions: 100 is more than 64"):
        check_limits(question, Limits(), encoder=None)
    looked_at = []
    monkeypatch.setattr(
        messages, "count_tokens", lambda text: looked_at.append(text) or 1
    )
    with pytest.raises(ValidationError, match="at most 1000 items"):
        Question(questions=["a"] * 20_000, passages=["a"])
    assert len(looked_at) < 1100
    # One mistake of each list is kept, not one of each text.
    with pytest.raises(ValidationError) as error:
        Question(questions=[1] * 999, passages=[1] * 999)
    assert error.value.error_count() == 2


@pytest.mark.parametrize("message", [Question, Asked])
def test_of_unknown_fields_the_first_is_told(message):
    known = {"question": "a", "passage": "a", "questions": ["a"], "passages": ["a"]}
    fields = {name: known[name] for name in known if name in message.model_fields}
    message.model_validate(fields)
    unknown = {f"unknown{number}": 0 for number in range(1000)}
    with pytest.raises(ValidationError) as caught:
        message.model_validate(fields | unknown)
    (error,) = caught.value.errors()
    assert (error["loc"], error["type"]) == (("unknown0",), "extra_forbidden")
    for other in (None, [], "a", 1):
        with pytest.raises(ValidationError) as caught:
            message.model_validate(other)
        assert caught.value.errors()[0]["loc"] == ()


def test_a_question_may_cost_just_the_limit():
    pieces = WordPieces([*SPECIAL, "a", "##a"])
    question = Question(questions=["a", "aa"], passages=["a" * 99, "a a"])
    assert sum(check_limits(question, Limits(tokens=208), pieces)) == 208


@pytest.mark.parametrize("field", ["top_k", "max_answer_tokens"])
def test_none_at_all_cannot_be_asked_for(field):
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        Question(questions=["a"], passages=["a"], **{field: 0})
