"""Tests of qanet.commands.answer."""

import io
import json
import os
import sys

import pytest

from qanet import cli

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


def test_no_answer_is_said_in_words(loaded, tmp_path, capsys):
    # Not blank, but without a word.
    path = tmp_path / "context.txt"
    path.write_text("\u200b", encoding="utf-8")
    assert answer(capsys, "--context-file", path) == "  0.0%  (no answer)\n"


@pytest.mark.parametrize("count", ["0", "-1", "many"])
def test_top_k_is_a_number_of_at_least_1(count, context_file, capsys):
    with pytest.raises(SystemExit) as exit:
        answer(capsys, "--context-file", context_file, "--top-k", count)
    assert exit.value.code == 2
    assert f"'{count}' is not a number of at least 1" in capsys.readouterr().err


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
    arguments[-1] = "q " * 1001
    line = refused(cli.main, *arguments, "--context-file", path)
    assert "--question: has 1,001 words and signs; shorten it to at most 1,000" in line


def test_answer_without_a_run(refused, context_file, tmp_path):
    arguments = ["answer", "--model", tmp_path, "--question", QUESTION]
    line = refused(cli.main, *arguments, "--context-file", context_file)
    assert "not a run directory" in line
