"""Tests of qanet.augmentation.cloze."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_clozes import check

from qanet.augmentation import cloze
from qanet.augmentation.cloze import (
    GAP,
    Cloze,
    make_cloze,
    most_frequent_share,
)
from qanet.datasets.sources import load_examples
from qanet.datasets.squad import Example, Span
from qanet.errors import UserError

PASSAGE = (
    "In 1891 Tesla moved to Paris. There Tesla met Anna. "
    "Her house stood in Paris since 1891. It rained."
)


def examples(*contexts):
    return [
        Example(str(i), "Who?", context, (Span("x", 0),), title="T")
        for i, context in enumerate(contexts)
    ]


def test_a_sentence_of_the_passage_becomes_the_question():
    questions = make_cloze(examples(PASSAGE), seed=1)
    texts = {q.example.question: q for q in questions}
    # The second sentence shares one name with the others; the last shares none.
    assert len(questions) == 3
    second = texts[f"There {GAP} met Anna."]
    assert second.example.answers == (Span("Tesla", 8),)
    assert second.example.context == (
        "In 1891 Tesla moved to Paris. Her house stood in Paris since 1891. It rained."
    )
    assert second.example.title == "T"
    # "Her" and "There" begin sentences, so they are no names.
    assert second.candidates == ("1891", "Paris", "Tesla")
    for question in questions:
        check(question)


def test_a_gap_and_an_answer_are_whole_numbers():
    (question,) = make_cloze(
        examples("There were 3 men. It cost 3.5 dollars. Later 3 went."), seed=1
    )
    # Of the first sentence the answer would stand after 3.5, so not first.
    assert question.example.question == f"Later {GAP} went."
    assert question.example.context == "There were 3 men. It cost 3.5 dollars."
    assert question.example.answers == (Span("3", 11),)


def test_words_that_are_no_names_and_parts_of_numbers_are_not_asked_for():
    # None begins a sentence here. "Her" and "Sun" are written in lower case too, "The"
    # is an article.
    passage = (
        "In The Times stood Her 10,000 days at 3.5. And The Sun told of Her 10,000, of "
        "3.5 and of 12. Later 12, 7:12 and her sun were in The Times."
    )
    questions = make_cloze(examples(passage), seed=1)
    candidates = {word for question in questions for word in question.candidates}
    assert candidates == {"12", "Times"}


def test_the_seed_fixes_the_gaps():
    many = examples(*(PASSAGE.replace("Anna", f"Anna {i}") for i in range(20)))
    first, again, other = (make_cloze(many, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert len({question.example.id for question in first}) == len(first)


def test_questions_of_the_sample():
    questions = make_cloze(load_examples("sample", "dev").examples, seed=1)
    assert len(questions) > 20
    for question in questions:
        check(question)


@settings(max_examples=50, deadline=None)
@given(st.text("Aa1 .\n?é\u2028XÉ", max_size=60))
def test_any_passage(text):
    try:
        questions = make_cloze(examples(f"{text} {PASSAGE}"), seed=1)
    except UserError:
        return
    for question in questions:
        assert question.example.answers[0].start >= 0
        check(question)


def test_passages_without_a_name_in_two_sentences_are_refused():
    with pytest.raises(UserError, match="no passage has a name or a number"):
        make_cloze(examples("It rained. The sun shone."), seed=1)


def test_a_passage_that_is_too_long_is_left_out_and_named(monkeypatch, caplog):
    short, long = "Zoë saw Rome. Rome saw Zoë.", "Zoë saw Rome, Bo. Rome saw Zoë."
    monkeypatch.setattr(cloze, "LONGEST", len(short))
    examples = [
        Example("1", "?", text, (), "H\x1b[31m\nomes") for text in (long, short)
    ]
    found = make_cloze(examples, seed=0)
    assert found == [
        replace(question, example=replace(question.example, id=f"cloze-1-{number}"))
        for number, question in enumerate(make_cloze(examples[1:], seed=0))
    ]
    assert "H [31m omes: left out, 31 characters" in caplog.text


def test_the_commonest_candidate():
    def question(context, answer):
        example = Example("1", GAP, context, (Span(answer, context.index(answer)),))
        return Cloze(example, ("Anna", "Bo", "Cy"))

    questions = [
        question("Bo and Anna and Anna", "Anna"),
        question("Bo and Anna and Anna", "Bo"),
        question("Bo and Anna", "Bo"),  # of two as common, the first
        question("Dee, Dee, Dee and Cy", "Cy"),  # Dee is no candidate
    ]
    assert most_frequent_share(questions) == 0.75
    nobody = Cloze(questions[0].example, ("Eve",))
    assert most_frequent_share([*questions, nobody]) == 0.6


def test_a_letter_alone_is_no_name():
    with pytest.raises(UserError, match="no passage has a name or a number"):
        make_cloze(examples("There was X here. Then came X there."), seed=1)


def test_a_word_that_stands_twice_in_its_sentence_leaves_two_gaps():
    passage = "They saw Rome, for Rome is old. All was in Rome then."
    texts = {q.example.question for q in make_cloze(examples(passage), seed=1)}
    assert f"They saw {GAP}, for {GAP} is old." in texts
