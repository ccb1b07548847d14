"""Tests of qanet.question_file."""

import errno
import io
import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qanet import question_file
from qanet.errors import UserError
from qanet.models.limits import ReadingLimits
from qanet.question_file import (
    Row,
    answer_rows,
    key_of,
    lines_of,
    parse_row,
    parts_of,
    read_rows,
    rows_done,
    write_answers,
)
from qanet.run import Run

CONTEXT = "Zoë lives in Rome."


def line(**values):
    return json.dumps({"question": "Where?", "context": CONTEXT} | values).encode()


def test_a_row_is_a_question_and_a_context():
    assert parse_row(3, line()) == Row(3, None, "Where?", CONTEXT)
    assert parse_row(3, b"\xef\xbb\xbf" + line()) == Row(3, None, "Where?", CONTEXT)
    several = parse_row(1, line(id=[7], context=["one", "two"]))
    assert several == Row(1, [7], "Where?", ["one", "two"])


def test_parts_are_bounded_in_rows_and_in_bytes(monkeypatch):
    monkeypatch.setattr(question_file, "TOGETHER", 3)
    monkeypatch.setattr(question_file, "BYTES", 10)
    rows = [Row(i, size=size) for i, size in enumerate([1, 2, 3, 1, 9, 2, 99, 1])]
    parts = [[row.number for row in part] for part in parts_of(iter(rows))]
    assert parts == [[0, 1, 2], [3, 4], [5], [6], [7]]
    assert list(parts_of([])) == []


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"caf\xe9", "is not UTF-8"),
        (rb'{"question": "Who \ud800?", "context": "c"}', "half a surrogate pair"),
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"id": NaN, "question": "q", "context": "c"}', "is not JSON"),
        (b'{"id": 1e999, "question": "q", "context": "c"}', "is not JSON"),
        (b"[]", "is no object"),
        (line(question=None), 'has no "question"'),
        (line(question=["a"]), 'has no "question"'),
        (line(context=3), 'has no "context"'),
        (line(context=[]), 'has no "context"'),
        (line(context=["a", 1]), 'has no "context"'),
        (line(context=["a", "\n"]), 'has a blank "context"'),
        (line(question=" "), 'has a blank "question"'),
        (line(question="\u200b"), 'has a blank "question"'),
    ],
)
def test_a_row_that_is_none_says_why(content, error):
    row = parse_row(2, content)
    assert row.number == 2
    assert error in row.error


@given(st.binary(max_size=60))
def test_any_line_is_a_row(content):
    row = parse_row(1, content)
    assert (row.error is None) == bool(row.question and row.context)


def test_blank_lines_are_counted_and_left_out():
    rows = list(read_rows([line(), b" \n", line(id="b")], first=5))
    assert [(row.number, row.id) for row in rows] == [(5, None), (7, "b")]


def test_answers_are_those_of_the_reader(trained_reader):
    rows = [
        Row(1, None, "Where does Zoë live?", CONTEXT),
        Row(2, "x", error="is not JSON"),
        Row(4, 0, "Where?", ["Bo lives in Oslo.", CONTEXT]),
        Row(5, None, "q " * 1001, CONTEXT),
    ]
    one, bad, several, long = answer_rows(trained_reader, rows, 2)
    pairs = [(rows[i].question, rows[i].context) for i in (0, 2)]
    expected = trained_reader.answer_many(pairs, 2)
    assert one == {
        "row": 1,
        "question": "Where does Zoë live?",
        "answers": [
            {"text": a.text, "start": a.start, "end": a.end, "score": a.score}
            for a in expected[0]
        ],
    }
    assert bad == {"row": 2, "id": "x", "error": "is not JSON"}
    assert (several["row"], several["id"]) == (4, 0)
    assert [a["passage"] for a in several["answers"]] == [
        a.passage for a in expected[1]
    ]
    assert "1,001" in long["error"]
    assert answer_rows(trained_reader, rows[1:2], 1) == [bad]


def test_a_question_without_a_token_of_the_reader_is_a_bad_row():
    """A word may have no piece."""
    vocabulary = SimpleNamespace(count=lambda text: 0, unit="word pieces")
    reader = SimpleNamespace(vocabulary=vocabulary, limits=ReadingLimits())
    (found,) = answer_rows(reader, [Row(3, "x", "\ue000", CONTEXT)], 1)
    assert found == {"row": 3, "id": "x", "error": 'has a blank "question"'}


def test_a_line_that_is_too_long_is_a_bad_row(monkeypatch):
    monkeypatch.setattr(question_file, "LONGEST", 80)
    content = b"\n".join([line(), b"x" * 300, line(), b"y" * 81])
    first, second, third, fourth = read_rows(lines_of(io.BytesIO(content), "rows"))
    assert (first.error, third.error) == (None, None)
    assert (second.number, third.number, fourth.number) == (2, 3, 4)
    assert "is longer than" in second.error
    assert "is longer than" in fourth.error


def test_a_file_that_cannot_be_read_to_its_end_is_named():
    def readline(size):
        raise OSError(errno.EIO, "Input/output error")

    lines = lines_of(SimpleNamespace(readline=readline), "rows.jsonl")
    with pytest.raises(UserError, match=r"rows\.jsonl: cannot be read: Input/output"):
        next(lines)


def test_what_was_cut_off_is_done_again(tmp_path):
    path = tmp_path / "out.part"
    assert rows_done(path) == (0, [])
    answered = [
        {"row": 1, "error": "is not JSON"},
        {"row": 3, "question": "q é", "answers": []},
        {"row": 4, "error": "is not JSON"},
    ]
    write_answers(path, answered[:1])
    write_answers(path, answered[1:])
    whole = path.read_bytes()
    assert rows_done(path) == (4, [1, 4])
    path.write_bytes(whole[:-3])
    assert rows_done(path) == (3, [1])
    assert path.read_bytes() == whole[: whole.rindex(b"{")]


def test_the_key_tells_readers_questions_and_counts_apart(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
        (tmp_path / name / "weights.npz").write_text(name)
    questions = tmp_path / "questions.jsonl"
    questions.write_text("a")
    keys = [
        key_of(tmp_path / name, k, questions) for name in ("one", "two") for k in (1, 2)
    ]
    questions.write_text("b")
    keys.append(key_of(tmp_path / "one", 1, questions))
    # What decides that there is no answer is a file of its own.
    Run(tmp_path / "one").save_threshold(0.25)
    keys.append(key_of(tmp_path / "one", 1, questions))
    assert len(set(keys)) == 6
    Run(tmp_path / "one").no_answer_path.unlink()
    questions.write_text("a")
    assert key_of(tmp_path / "one", 1, questions) == keys[0]


@pytest.mark.parametrize(
    "content",
    [
        *(b"{}\n", b"1\n", b"text\n", b'{"row": "x"}\n', b'{"row": 1e400}\n'),
        *(b'{"row": -1}\n', b'{"row": 1' + 30 * b"0" + b"}\n"),
        b'{"row": 2}\n{"row": 1}\n',
        *(b'{"row": 1}\n{"row": 1}\n', b'{"row": true}\n'),
        b"[" * 100_000 + b"\n",
    ],
)
def test_a_file_of_something_else_is_left_alone(tmp_path, content):
    path = tmp_path / "out.part"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"out\.part: is no unfinished file"):
        rows_done(path)
    assert path.read_bytes() == content


def test_a_row_that_is_too_large_is_a_part_of_its_own(monkeypatch):
    monkeypatch.setattr(question_file, "BYTES", 10)
    row = Row(1, size=99)
    assert list(parts_of([row])) == [[row]]


def test_a_question_counts_once_for_each_passage(monkeypatch):
    """It is split and kept for each of them."""
    monkeypatch.setattr(question_file, "LONGEST", 200)
    few, many = line(context=["a"] * 9), line(question="w " * 9, context=["a"] * 11)
    good, bad = read_rows([few, many])
    assert good.size == len(few) + 8 * len("Where?")
    assert not good.error
    assert bad.error == "has more passages than are read with such a question"
    assert (bad.number, bad.context) == (2, "")
    (one,) = read_rows([line()])
    assert one.size == len(line())


def test_a_question_of_just_the_limit_is_answered():
    vocabulary = SimpleNamespace(count=len, unit="letters")
    reader = SimpleNamespace(
        vocabulary=vocabulary,
        limits=ReadingLimits(question=3),
        answer_many=lambda pairs, top_k: [[] for _ in pairs],
    )
    rows = [Row(1, None, "who", "c"), Row(2, None, "whom", "c")]
    good, bad = answer_rows(reader, rows, 1)
    assert good == {"row": 1, "question": "who", "answers": []}
    assert bad["error"] == "has a question of 4 letters; at most 3 are read"


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_of_just_the_limit_is_read(monkeypatch, end):
    monkeypatch.setattr(question_file, "LONGEST", 80)
    whole = b"x" * (80 - len(end)) + end
    assert list(lines_of(io.BytesIO(whole), "rows")) == [whole]
    assert list(lines_of(io.BytesIO(b"x" + whole), "rows")) == [None]


def test_answers_are_on_disk_before_the_next_are_computed(tmp_path, monkeypatch):
    path, synced = tmp_path / "out.part", []
    monkeypatch.setattr("os.fsync", lambda number: synced.append(path.read_bytes()))
    write_answers(path, [{"row": 1, "question": "Zoë?"}])
    assert synced == ['{"row": 1, "question": "Zoë?"}\n'.encode()]
