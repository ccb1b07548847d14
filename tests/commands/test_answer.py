"""Tests of qanet.commands.answer."""

import io
import json
import os
import sys
import threading
from unittest import mock

import pytest

from qanet import cli, question_file
from qanet.errors import UserError

QUESTION = "Where does Zoë live?"
CONTEXT = "Bo’ lives in Rome.\nZoë lives in São Paulo.\n"


def answer(capsys, *arguments):
    cli.main(["answer", "--model", "run", "--question", QUESTION, *map(str, arguments)])
    return capsys.readouterr().out


def test_answer_prints_the_best_answers(loaded, trained_reader, tmp_path, capsys):
    path = tmp_path / "context.txt"
    path.write_text("Bo’ lives in Rome, Zoë in São Paulo.", encoding="utf-8")
    output = answer(capsys, "--context-file", path, "--top-k", 2)
    expected = trained_reader.answer(QUESTION, path.read_text("utf-8"), top_k=2)
    assert output.splitlines() == [f"{a.score:6.1%}  {a.text}" for a in expected]
    output = answer(capsys, "--context-file", path)
    assert output == f"{expected[0].score:6.1%}  {expected[0].text}\n"


def test_an_answer_over_a_line_break_is_one_line(
    loaded, trained_reader, tmp_path, capsys
):
    path = tmp_path / "context.txt"
    path.write_text("Bo\nRome", encoding="utf-8")
    output = answer(capsys, "--context-file", path, "--top-k", 20)
    assert "Bo Rome" in output
    assert all("%" in line for line in output.splitlines())


def test_a_terminal_is_sent_no_commands(loaded, tmp_path, capsys):
    path = tmp_path / "context.txt"
    path.write_text("Zoë\x1b]0;title\x07\x9b2J lives in São\u200d Paulo.")
    output = answer(capsys, "--context-file", path, "--top-k", 1000)
    assert "title" in output
    # A joiner belongs to a word.
    assert "São\u200d" in output
    assert {c for c in output if not c.isprintable()} == {"\n", "\u200d"}


def test_no_answer_is_said_in_words(loaded, tmp_path, capsys):
    # Not blank, but without a word.
    path = tmp_path / "context.txt"
    path.write_text("\u200b", encoding="utf-8")
    assert answer(capsys, "--context-file", path) == "  0.0%  (no answer)\n"


@pytest.mark.parametrize("count", ["0", "-1", "many", "1000001", "9" * 5000])
def test_top_k_is_a_number_from_1_to_a_million(count, context_file, capsys):
    with pytest.raises(SystemExit) as exit:
        answer(capsys, "--context-file", context_file, "--top-k", count)
    assert exit.value.code == 2
    assert f"'{count}' is not a number from 1 to 1,000,000" in capsys.readouterr().err


def test_answer_prints_json(loaded, context_file, trained_reader, capsys):
    output = answer(capsys, "--context-file", context_file, "--top-k", 3, "--json")
    records = [json.loads(line) for line in output.splitlines()]
    expected = trained_reader.answer(QUESTION, CONTEXT, top_k=3)
    assert len(records) == 3
    for record, wanted in zip(records, expected, strict=True):
        assert list(record) == ["text", "start", "end", "score"]
        assert record["text"] == wanted.text
        assert CONTEXT[record["start"] : record["end"]] == record["text"]
        assert record["score"] == pytest.approx(wanted.score)


def test_answer_counts_the_characters_of_the_file_as_it_is(loaded, tmp_path, capsys):
    """Line ends of Windows are two characters."""
    text = CONTEXT.replace("\n", "\r\n")
    path = tmp_path / "windows.txt"
    path.write_bytes(text.encode())
    output = answer(capsys, "--context-file", path, "--top-k", 20, "--json")
    for line in output.splitlines():
        record = json.loads(line)
        assert text[record["start"] : record["end"]] == record["text"]


def test_answer_reads_standard_input(loaded, context_file, monkeypatch, capsys):
    expected = answer(capsys, "--context-file", context_file, "--json")
    piped = io.TextIOWrapper(io.BytesIO(CONTEXT.encode()), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", piped)
    assert answer(capsys, "--context-file", "-", "--json") == expected


def test_answer_prints_text_of_any_script(loaded, tmp_path, capsys):
    path = tmp_path / "context.txt"
    path.write_text("東京", encoding="utf-8")
    output = answer(capsys, "--context-file", path, "--top-k", 3, "--json")
    assert "東" in output
    assert {json.loads(line)["text"] for line in output.splitlines()} == {
        "東",
        "京",
        "東京",
    }


def test_answer_from_standard_input_that_is_closed(refused, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    arguments = ["--model", "run", "--question", QUESTION, "--context-file", "-"]
    assert "standard input is closed" in refused(cli.main, "answer", *arguments)


def test_answers_that_nobody_reads_any_more(loaded, context_file, monkeypatch, capsys):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        with pytest.raises(SystemExit) as caught:
            answer(capsys, "--context-file", context_file)
    assert caught.value.code == 141
    assert capsys.readouterr().err == ""


def test_a_person_is_told_what_is_being_done(loaded, context_file, monkeypatch, capsys):
    arguments = ["--model", "run", "--question", QUESTION]
    arguments += ["--context-file", str(context_file)]
    cli.main(["answer", *arguments])
    assert capsys.readouterr().err == ""
    cli.main(["answer", *arguments, "--verbose"])
    told = capsys.readouterr().err
    assert told.startswith("loading run\n")
    assert "reading:   0%" in told
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    cli.main(["answer", *arguments])
    assert capsys.readouterr().err.startswith("loading run\n")
    cli.main(["answer", *arguments, "--quiet"])
    assert capsys.readouterr().err == ""


def test_answer_refuses_mistakes(refused, loaded, tmp_path):
    arguments = ["answer", "--model", tmp_path, "--question", QUESTION]
    path = tmp_path / "context.txt"
    line = refused(cli.main, *arguments, "--context-file", path)
    assert str(path) in line
    path.write_bytes(b"caf\xe9")
    line = refused(cli.main, *arguments, "--context-file", path)
    assert str(path) in line
    assert "UTF-8" in line
    path.write_text(" \n")
    line = refused(cli.main, *arguments, "--context-file", path)
    assert line == f"error: --context-file {path}: is blank; give some text"
    path.write_text("text")
    arguments[-1] = " "
    line = refused(cli.main, *arguments, "--context-file", path)
    assert line == "error: --question: is blank; give some text"
    # As the system gives bytes that are no UTF-8.
    arguments[-1] = "Who? \udcff"
    line = refused(cli.main, *arguments, "--context-file", path)
    assert line == "error: --question: is not UTF-8; give it in UTF-8"
    arguments[-1] = "q " * 1001
    line = refused(cli.main, *arguments, "--context-file", path)
    assert "--question: has 1,001 words and signs; shorten it to at most 1,000" in line


def test_answer_without_a_run(refused, context_file, tmp_path):
    arguments = ["answer", "--model", tmp_path, "--question", QUESTION]
    line = refused(cli.main, *arguments, "--context-file", context_file)
    assert "not a run directory" in line


# Many questions from a file.


def rows(*questions):
    values = [{"question": q, "context": CONTEXT, "id": q[:3]} for q in questions]
    return "".join(json.dumps(row) + "\n" for row in values)


def many(*arguments):
    cli.main(["answer", "--model", "run", *map(str, arguments)])


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_text(rows(QUESTION, "Who?", "Who lives in Rome?"))
    return path


def test_many_questions_from_a_file(
    loaded, trained_reader, questions, tmp_path, capsys
):
    output = tmp_path / "new" / "answers.jsonl"
    many("--input", questions, "--output", output, "--top-k", 2)
    lines = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert [(line["row"], line["id"]) for line in lines] == [
        (1, "Whe"),
        (2, "Who"),
        (3, "Who"),
    ]
    pairs = [(line["question"], CONTEXT) for line in lines]
    for line, expected in zip(lines, trained_reader.answer_many(pairs, 2), strict=True):
        assert [a["text"] for a in line["answers"]] == [a.text for a in expected]
    assert [path.name for path in output.parent.iterdir()] == ["answers.jsonl"]
    assert capsys.readouterr().out == ""
    # The same to standard output.
    many("--input", questions, "--top-k", 2)
    assert capsys.readouterr().out == output.read_text("utf-8")


def test_questions_are_answered_as_they_come(loaded, questions, monkeypatch, capsys):
    piped = io.TextIOWrapper(io.BytesIO(questions.read_bytes()), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", piped)
    many("--input", "-")
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.skipif(os.name != "posix", reason="there are no such pipes")
def test_questions_of_a_pipe_are_read_once(loaded, questions, tmp_path):
    pipe, output = tmp_path / "pipe", tmp_path / "answers.jsonl"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[questions.read_bytes()])
    writer.start()
    many("--input", pipe, "--output", output)
    writer.join()
    assert len(output.read_text("utf-8").splitlines()) == 3


@pytest.mark.skipif(os.name != "posix", reason="there are no such locks")
def test_two_commands_do_not_write_the_same_file(
    loaded, questions, tmp_path, monkeypatch, capsys
):
    output = tmp_path / "answers.jsonl"
    answer_rows = question_file.answer_rows

    def meanwhile(*arguments):
        with pytest.raises(SystemExit):
            many("--input", questions, "--output", output)
        return answer_rows(*arguments)

    monkeypatch.setattr(question_file, "answer_rows", meanwhile)
    many("--input", questions, "--output", output)
    assert "another process is at work" in capsys.readouterr().err
    lines = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert [line["row"] for line in lines] == [1, 2, 3]


def test_an_output_that_another_program_wrote_meanwhile_is_kept(
    loaded, questions, tmp_path, monkeypatch, capsys
):
    output = tmp_path / "answers.jsonl"
    answer_rows = question_file.answer_rows

    def meanwhile(*arguments):
        output.write_text("precious")
        return answer_rows(*arguments)

    monkeypatch.setattr(question_file, "answer_rows", meanwhile)
    with pytest.raises(SystemExit):
        many("--input", questions, "--output", output)
    assert "is there already" in capsys.readouterr().err
    assert output.read_text() == "precious"
    # Nothing is answered twice.
    output.unlink()
    monkeypatch.setattr(question_file, "answer_rows", answer_rows)
    many("--input", questions, "--output", output)
    assert len(output.read_text("utf-8").splitlines()) == 3


def test_bad_rows_are_told_and_the_others_answered(loaded, questions, tmp_path, capsys):
    questions.write_text(f"{rows('Who?')}{{\n\n{rows(' ')}{rows('Where?')}")
    output = tmp_path / "answers.jsonl"
    with pytest.raises(SystemExit) as caught:
        many("--input", questions, "--output", output)
    assert caught.value.code == 2
    *warnings, error = capsys.readouterr().err.splitlines()
    assert warnings == [
        f"warning: {questions}: row 2 is not JSON",
        f'warning: {questions}: row 4 has a blank "question"',
    ]
    assert error == (
        f"error: {questions}: 2 rows have no answer, the first being row 2"
    )
    lines = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert ["error" in line for line in lines] == [False, True, True, False]


def test_a_disk_that_was_full_at_the_start_stops_nothing_later(
    loaded, questions, tmp_path, monkeypatch
):
    output = tmp_path / "answers.jsonl"

    def full(path, text):
        raise UserError(f"{path}: cannot be written: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("qanet.files.write_text", full)
        with pytest.raises(SystemExit):
            many("--input", questions, "--output", output)
    assert not list(tmp_path.glob("answers*"))
    # So it is where the process was killed before anything was written.
    (tmp_path / "answers.jsonl.part").touch()
    many("--input", questions, "--output", output)
    assert output.exists()


def test_what_a_reader_raises_is_no_fault_of_the_output(
    questions, tmp_path, monkeypatch
):
    """Nor is anything left of it."""
    (tmp_path / "run").mkdir()
    monkeypatch.setattr("qanet.commands.answer.check_reader", lambda directory: None)
    monkeypatch.setattr("qanet.question_file.reader_files", lambda directory: [])
    failing = mock.Mock(side_effect=OSError("libcudart.so: cannot open"))
    monkeypatch.setattr("qanet.reader.Reader.load", failing)
    with pytest.raises(OSError, match="libcudart"):
        many("--input", questions, "--output", tmp_path / "answers.jsonl")
    assert not list(tmp_path.glob("answers*"))


def test_an_interrupted_command_goes_on(
    loaded, questions, tmp_path, monkeypatch, capsys
):
    output = tmp_path / "answers.jsonl"
    many("--input", questions, "--output", output)
    whole = output.read_bytes()
    output.unlink()
    part = tmp_path / "answers.jsonl.part"
    asked, answer_rows = [], question_file.answer_rows

    def noted(reader, some, top_k):
        if len(asked) == 2:
            asked.append(None)
            raise KeyboardInterrupt
        asked.extend(row.number for row in some)
        return answer_rows(reader, some, top_k)

    monkeypatch.setattr(question_file, "TOGETHER", 1)
    monkeypatch.setattr(question_file, "answer_rows", noted)
    with pytest.raises(SystemExit):
        many("--input", questions, "--output", output)
    assert not output.exists()
    # A packed file is not taken for bad rows.
    with pytest.raises(SystemExit):
        many("--input", f"{questions}.gz", "--output", tmp_path / "other")
    assert "unpack it with gunzip" in capsys.readouterr().err
    # With other settings it is not gone on with.
    with pytest.raises(SystemExit):
        many("--input", questions, "--output", output, "--top-k", 2)
    assert "with another --top-k; give those again" in capsys.readouterr().err
    # Cut off in the middle of a line.
    part.write_bytes(part.read_bytes()[:-5])
    many("--input", questions, "--output", output)
    assert asked == [1, 2, None, 2, 3]
    lines = [json.loads(line) for line in whole.splitlines()]
    found = [json.loads(line) for line in output.read_bytes().splitlines()]
    for one, other in zip(found, lines, strict=True):
        # Read alone, a score differs by rounding.
        assert one["row"] == other["row"]
        assert one["answers"][0]["text"] == other["answers"][0]["text"]
    assert sorted(p.name for p in tmp_path.iterdir() if "answers" in p.name) == [
        "answers.jsonl"
    ]
    assert "going on after row" in capsys.readouterr().err


def test_answers_of_a_stream_are_not_gone_on_with(
    loaded, questions, tmp_path, monkeypatch, capsys
):
    """Nothing tells whether the rows of the next stream are the same."""
    output, part = tmp_path / "answers.jsonl", tmp_path / "answers.jsonl.part"
    answer_rows = question_file.answer_rows

    def interrupted(reader, some, top_k):
        if some[0].number == 2:
            raise KeyboardInterrupt
        return answer_rows(reader, some, top_k)

    def pipe():
        piped = io.TextIOWrapper(io.BytesIO(questions.read_bytes()))
        monkeypatch.setattr(sys, "stdin", piped)
        with pytest.raises(SystemExit) as caught:
            many("--input", "-", "--output", output)
        return caught.value.code

    with monkeypatch.context() as patch:
        patch.setattr(question_file, "answer_rows", interrupted)
        assert pipe() == 130
    before = part.read_bytes()
    assert before.count(b"\n") == 1
    assert pipe() == 2
    assert "of a stream nothing tells" in capsys.readouterr().err
    assert part.read_bytes() == before
    assert not output.exists()


def test_files_beside_the_answers_are_kept(loaded, questions, tmp_path):
    key = questions.rename(tmp_path / "answers.key")
    before = key.read_bytes()
    many("--input", key, "--output", tmp_path / "answers")
    assert key.read_bytes() == before


@pytest.mark.parametrize("ending", [".part", ".part.key"])
def test_questions_that_answers_would_replace(refused, questions, tmp_path, ending):
    questions = questions.rename(tmp_path / f"answers{ending}")
    before = questions.read_bytes()
    arguments = ["--input", questions, "--output", tmp_path / "answers"]
    line = refused(cli.main, "answer", *arguments)
    assert "is given for something else" in line
    assert questions.read_bytes() == before


def test_where_nothing_was_answered_nothing_is_left(
    loaded, questions, tmp_path, monkeypatch
):
    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(question_file, "answer_rows", fail)
    with pytest.raises(SystemExit):
        many("--input", questions, "--output", tmp_path / "answers.jsonl")
    assert not [p.name for p in tmp_path.iterdir() if "answers" in p.name]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--question", "Who?"], "--context-file: is missing"),
        (["--context-file", "a"], "--question: is missing"),
        (["--input", "q", "--question", "Who?"], "--input brings its questions"),
        (["--input", "absent"], "absent: cannot be read"),
        (["--input", "q", "--output", "run"], "--output run: is a directory"),
        (
            ["--question", "q", "--context-file", "a", "--output", "x"],
            "--output goes with --input",
        ),
    ],
)
def test_options_that_do_not_go_together(refused, loaded, options, message):
    assert message in refused(cli.main, "answer", "--model", "run", *options)
