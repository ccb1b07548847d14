"""Tests of qanet.shipped: the reader that is part of the package."""

import hashlib
import json
import logging
import shutil
from pathlib import Path

import pytest

from qanet import cli, shipped
from qanet.errors import UserError
from qanet.onnx_reader import is_export
from qanet.reader import Reader
from qanet.run import Run
from qanet.serving import connections

QUESTION, CONTEXT = "Where does Zoë live?", "Zoë lives in São Paulo.\n"
SAID = "reader: boxed, which is part of the package"
BAKERY = (
    "The bakery of Maria Lindqvist stands on Harbour Street in Uppsala. It was opened "
    "in 1987 by her father, who came from Gdansk. Every morning it sells about four "
    "hundred loaves of rye bread, and on Sundays it is closed."
)
RIVER = (
    "The river rises in the hills near Orvane and flows north for 212 kilometres until "
    "it reaches the lake. Its largest bridge, built of granite, was designed by the "
    "engineer Thomas Weller. In spring the river floods the meadows because the snow "
    "in the hills melts."
)
MOST_BYTES = 20 * 2**20
# Tells the memory before and after a large batch.
MEMORY = """
import resource
from pathlib import Path
from qanet import Reader

def memory():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()

reader = Reader.load()
reader.answer("Who?", "Zoë lives in São Paulo. " * 30)
before = memory()
reader.answer_many([("Who?", "Zoë lives in São Paulo. " * 60)] * 32)
print(before, memory())
"""


@pytest.fixture
def boxed(trained, trained_model, tmp_path, monkeypatch):
    """Another reader in the place of the one that is part of the package."""
    directory = shutil.copytree(trained.directory, tmp_path / "boxed")
    monkeypatch.setattr(shipped, "SHIPPED", directory)
    monkeypatch.setattr(Run, "load", lambda run: trained_model)
    monkeypatch.chdir(tmp_path)
    return directory


@pytest.fixture
def context_file(tmp_path):
    path = tmp_path / "context.txt"
    path.write_text(CONTEXT, "utf-8")
    return path


def said(caplog):
    """What the package says itself; TensorFlow counts how often it has traced."""
    return [r.getMessage() for r in caplog.records if r.name.startswith("qanet")]


def test_it_is_loaded_where_no_other_is_given(boxed, trained_reader, caplog):
    caplog.set_level(logging.INFO, "qanet")
    answer = Reader.load().answer(QUESTION, CONTEXT)
    assert answer == trained_reader.answer(QUESTION, CONTEXT)
    assert said(caplog) == [SAID]


def test_another_reader_is_not_taken_for_it(boxed, trained, caplog):
    caplog.set_level(logging.INFO, "qanet")
    Reader.load(str(trained.directory))
    assert said(caplog) == []


def test_answer_takes_it_and_says_so(boxed, context_file, trained_reader, capsys):
    asked = ["answer", "--question", QUESTION, "--context-file", str(context_file)]
    cli.main([*asked, "--json"])
    said = capsys.readouterr()
    answer = json.loads(said.out)
    assert answer["text"] == trained_reader.answer(QUESTION, CONTEXT).text
    assert said.err == f"{SAID}\n"
    cli.main([*asked, "--json", "--quiet"])
    assert capsys.readouterr().err == ""


def test_many_questions_are_answered_by_it(boxed, tmp_path, capsys):
    questions = tmp_path / "questions.jsonl"
    questions.write_text(json.dumps({"question": QUESTION, "context": CONTEXT}))
    cli.main(["answer", "--input", str(questions)])
    said = capsys.readouterr()
    assert json.loads(said.out)["row"] == 1
    assert said.err == f"{SAID}\n"


def test_evaluate_takes_it_and_writes_nothing_into_the_package(
    boxed, tiny_files, tmp_path, capsys
):
    before = sorted(boxed.rglob("*"))
    cli.evaluate(["--data", str(tiny_files.dev)])
    said = capsys.readouterr()
    assert json.loads(said.out.splitlines()[-1])["total"] == 10
    assert SAID in said.err.splitlines()
    assert sorted(boxed.rglob("*")) == before
    assert (tmp_path / "evaluation" / "dev" / "metrics.json").is_file()


def test_serve_takes_it(boxed, trained_reader, monkeypatch, capsys):
    class Server:
        def run(self, sockets):
            assert sockets

    served = []
    monkeypatch.setattr(connections, "make_server", lambda app, level: Server())
    monkeypatch.setattr(Reader, "of", lambda trained, as_they_come: trained_reader)
    monkeypatch.setattr("qanet.serving.server.make_app", served.append)
    cli.main(["serve", "--port", "0"])
    assert capsys.readouterr().out.startswith(f"loading {boxed}; then at http://")
    assert [*served[0]] == ["boxed"]


def test_where_it_lacks_one_line_says_so(
    monkeypatch, refused, context_file, tiny_files, tmp_path
):
    absent = tmp_path / "absent"
    monkeypatch.setattr(shipped, "SHIPPED", absent)
    expected = f"{absent}: no reader is part of this installation; give"
    with pytest.raises(UserError, match=expected):
        Reader.load()
    for door, *arguments in (
        (cli.main, "answer", "--question", "Who?", "--context-file", context_file),
        (cli.main, "answer", "--input", context_file),
        (cli.main, "serve", "--port", 0),
        (cli.evaluate, "--data", tiny_files.dev),
    ):
        line = refused(door, *arguments)
        assert expected in line
        assert "--model" in line
    assert not (tmp_path / "evaluation").exists()


def test_the_shipped_reader_is_whole_and_small():
    (checksums,) = shipped.SHIPPED.glob("SHA256SUMS")
    listed = {
        name: checksum
        for checksum, name in (
            line.split("  ", 1) for line in checksums.read_text("utf-8").splitlines()
        )
    }
    files = {
        path.relative_to(shipped.SHIPPED).as_posix(): path.read_bytes()
        for path in shipped.SHIPPED.rglob("*")
        if path.is_file() and path != checksums
    }
    found = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    assert found == listed
    assert sum(map(len, files.values())) <= MOST_BYTES
    assert "README.md" in files
    assert is_export(shipped.SHIPPED)


def test_its_card_leaves_nothing_open():
    card = (shipped.SHIPPED / "README.md").read_text("utf-8")
    assert "not stated" not in card
    assert "CC BY-SA 4.0" in card


@pytest.fixture(scope="module")
def reader():
    return Reader.load()


@pytest.mark.parametrize(
    ("question", "context", "expected"),
    [
        ("When was the bakery opened?", BAKERY, {"1987", "in 1987"}),
        (
            "How many loaves does it sell every morning?",
            BAKERY,
            {"four hundred", "about four hundred"},
        ),
        ("How long is the river?", RIVER, {"212 kilometres"}),
        (
            "Who designed the bridge?",
            RIVER,
            {"Thomas Weller", "engineer Thomas Weller", "the engineer Thomas Weller"},
        ),
        ("What is the bridge built of?", RIVER, {"granite"}),
    ],
)
def test_it_answers_plain_questions(reader, question, context, expected):
    assert reader.answer(question, context).text in expected


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_the_memory_of_a_large_batch_is_given_back(door):
    before, after = map(int, door("-c", MEMORY).stdout.split())
    # The batch needs about 200 MiB.
    assert after < before + 40 * 2**20
