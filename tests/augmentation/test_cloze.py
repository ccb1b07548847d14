"""Tests of qanet.augmentation.cloze."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qanet.augmentation import cloze
from qanet.augmentation.cloze import (
    GAP,
    Cloze,
    make_cloze,
    most_frequent_share,
    read_books,
    read_cnn,
)
from qanet.datasets.sources import load_examples
from qanet.datasets.squad import Example, Span
from qanet.errors import UserError
from qanet.text.tokenizer import tokenize

PASSAGE = (
    "In 1891 Tesla moved to Paris. There Tesla met Anna. "
    "Her house stood in Paris since 1891. It rained."
)


def examples(*contexts):
    return [
        Example(str(i), "Who?", context, (Span("x", 0),), title="T")
        for i, context in enumerate(contexts)
    ]


def check(question):
    """What each cloze question is."""
    example = question.example
    (answer,) = example.answers
    # Without points, commas and colons in numbers, a number is one token.
    question_text = re.sub(r"(?<=[0-9])[.,:](?=[0-9])", "0", example.question)
    words = tokenize(example.context)
    assert example.context[answer.start :].startswith(answer.text)
    assert words.count(answer.text) >= 1
    # The first place: before it no token is the answer, not even within a number.
    assert answer.text not in tokenize(example.context[: answer.start])
    assert GAP in tokenize(question_text)
    assert answer.text not in tokenize(question_text)
    assert answer.text in question.candidates
    assert set(question.candidates) <= set(words)


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
    examples = [Example("1", "?", text, (), "Homes") for text in (long, short)]
    found = make_cloze(examples, seed=0)
    assert found == [
        replace(question, example=replace(question.example, id=f"cloze-1-{number}"))
        for number, question in enumerate(make_cloze(examples[1:], seed=0))
    ]
    assert "Homes: left out, 31 characters" in caplog.text


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


CNN = (
    "http://x\n\n@entity1 met @entity12 . it was @entity1 's day\n\n"
    "@placeholder met somebody\n\n@entity1\n\n@entity1:Anna\n@entity12:Bo\n"
)


def test_files_of_cnn(tmp_path):
    (tmp_path / "b.question").write_text(CNN.replace("somebody", "nobody"))
    (tmp_path / "a.question").write_text(CNN)
    (tmp_path / "other.txt").write_text("rubbish")
    first, second = read_cnn(tmp_path)
    assert first.example.id == "a"
    assert first.example.question == f"{GAP} met somebody"
    assert first.example.context == "entity1 met entity12 . it was entity1 's day"
    assert first.example.answers == (Span("entity1", 0),)
    assert first.candidates == ("entity1", "entity12")
    assert second.example.question == f"{GAP} met nobody"
    check(first)


def test_files_of_cnn_that_are_none(tmp_path):
    with pytest.raises(UserError, match=r"holds no \.question files"):
        read_cnn(tmp_path)
    path = tmp_path / "a.question"
    for text, message in (
        ("x\n\ny", "must hold source, context"),
        (CNN.replace("@placeholder", "who"), "must hold source, context"),
        (CNN.replace("\n\n@entity1\n\n", "\n\n@entity3\n\n"), "no answer is a word"),
    ):
        path.write_text(text)
        with pytest.raises(UserError, match=message) as caught:
            read_cnn(tmp_path)
        assert str(tmp_path) in str(caught.value)


def book(question=f"{GAP} laughed .\tBo\t\tAnna|Bo|Dee"):
    lines = [f"{i} Anna saw Bo and the tree ." for i in range(1, 21)]
    return "\n".join([*lines, f"21 {question}"])


def test_files_of_the_children_s_book_test(tmp_path):
    path = tmp_path / "books.txt"
    path.write_text(f"{book()}\n\n{book()}\n")
    first, second = read_books(path)
    assert first.example.question == f"{GAP} laughed ."
    assert first.example.context.startswith("Anna saw Bo and the tree .\nAnna")
    assert first.example.answers == (Span("Bo", 9),)
    # Dee stands in the file's list, but not in the context.
    assert first.candidates == ("Anna", "Bo")
    assert first.example.id != second.example.id
    check(first)


def test_answers_that_are_no_words_are_left_out(tmp_path, caplog):
    """As hyphenated ones, which are several tokens."""
    path = tmp_path / "books.txt"
    other = book(f"{GAP} laughed .\tlooking-glass\t\tAnna|looking-glass")
    path.write_text(f"{other}\n\n{book()}\n")
    with caplog.at_level("INFO", "qanet"):
        (question,) = read_books(path)
    assert question.example.id == "book-2"
    assert f"{path}: 1 questions left out" in caplog.text
    path.write_text(other)
    with pytest.raises(UserError, match=r"books\.txt: no answer is a word"):
        read_books(path)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("Somebody laughed .\tBo\t\tAnna|Bo", "question 2: must be 20 numbered"),
        (f"{GAP} laughed .", "question 2: must be 20 numbered"),
    ],
)
def test_files_of_the_children_s_book_test_that_are_none(tmp_path, question, message):
    path = tmp_path / "books.txt"
    path.write_text(f"{book()}\n\n{book(question)}\n")
    with pytest.raises(UserError, match=message):
        read_books(path)
    path.write_text("")
    with pytest.raises(UserError, match="question 1: must be 20 numbered"):
        read_books(path)
    with pytest.raises(UserError, match="cannot be read"):
        read_books(tmp_path / "missing.txt")


def test_a_letter_alone_is_no_name():
    with pytest.raises(UserError, match="no passage has a name or a number"):
        make_cloze(examples("There was X here. Then came X there."), seed=1)


def test_a_word_that_stands_twice_in_its_sentence_leaves_two_gaps():
    passage = "They saw Rome, for Rome is old. All was in Rome then."
    texts = {q.example.question for q in make_cloze(examples(passage), seed=1)}
    assert f"They saw {GAP}, for {GAP} is old." in texts


def test_files_of_cnn_without_their_entities(tmp_path):
    parts = CNN.split("\n\n")
    path = tmp_path / "a.question"
    path.write_text("\n\n".join(parts[:4]))
    (question,) = read_cnn(tmp_path)
    assert question.candidates == ("entity1", "entity12")
    path.write_text("\n\n".join(parts[:3]))
    with pytest.raises(UserError, match="must hold source, context"):
        read_cnn(tmp_path)


def test_an_answer_is_a_whole_token_and_may_have_blanks_around_it(tmp_path):
    path = tmp_path / "books.txt"
    part = book(f"{GAP} laughed .\ttre\t\tAnna|tre")
    path.write_text(f"{part}\n\n" + book(f"{GAP} laughed .\tBo \t\tAnna|Bo"))
    (question,) = read_books(path)
    assert question.example.answers == (Span("Bo", 9),)


@pytest.mark.parametrize(
    "text",
    [
        book().replace("20 Anna", "20 Anna saw Bo .\n20 Anna"),
        book(f"{GAP} laughed .\tBo\tAnna|Bo"),
    ],
)
def test_questions_of_books_with_other_lines_or_fields(tmp_path, text):
    path = tmp_path / "books.txt"
    path.write_text(text)
    with pytest.raises(UserError, match="question 1: must be 20 numbered"):
        read_books(path)
