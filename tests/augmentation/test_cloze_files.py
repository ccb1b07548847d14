"""Tests of qanet.augmentation.cloze_files."""

import pytest
from made_clozes import check

from qanet.augmentation.cloze import GAP
from qanet.augmentation.cloze_files import read_books, read_cnn
from qanet.datasets.squad import Span
from qanet.errors import UserError

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
