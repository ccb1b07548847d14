"""Tests of qanet.commands.translate."""

import os
import sys
import threading
from pathlib import Path

import pytest

from qanet import cli
from qanet.training import translator_trainer
from qanet.translation import translator


class Reversed:
    """Turns words around; the second translation has an exclamation mark."""

    name = "reversed"
    batch_size = 2

    def __init__(self):
        self.batches = []

    def translate(self, sentences, count):
        self.batches.append(sentences)
        turned = [" ".join(reversed(sentence.split())) for sentence in sentences]
        return [[text, f"{text}!"][:count] if text else [] for text in turned]


@pytest.fixture
def opened(monkeypatch):
    opened = Reversed()
    monkeypatch.setattr(translator, "open_translator", lambda name: opened)
    return opened


def test_run_translates_a_sentence_a_line(opened, tmp_path, capsys):
    path = tmp_path / "text.txt"
    path.write_bytes("Zoë is old\r\n\nA\u2028b c\nlast".encode())
    command = ["translate", "run", "--translator", "x", "--input", str(path)]
    cli.main(command)
    assert capsys.readouterr().out == "old is Zoë\n\nc b A\nlast\n"
    assert [len(batch) for batch in opened.batches] == [2, 2]
    cli.main([*command, "--candidates", "2"])
    assert capsys.readouterr().out.splitlines()[0] == "old is Zoë\told is Zoë!"


def test_run_refuses_a_missing_text_before_it_loads_a_model(
    refused, monkeypatch, tmp_path
):
    monkeypatch.setattr("qanet.translation.translator.open_translator", None)
    command = ["run", "--translator", "x", "--input", tmp_path / "text.txt"]
    assert "No such file" in refused(cli.main, "translate", *command)


@pytest.mark.skipif(os.name != "posix", reason="there are no such pipes")
def test_run_translates_what_a_pipe_brings(opened, tmp_path, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=["a b\n"])
    writer.start()
    cli.main(["translate", "run", "--translator", "x", "--input", str(pipe)])
    writer.join()
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_run_refuses_mistakes(refused, opened, tmp_path):
    command = ["run", "--translator", "x", "--input"]
    (tmp_path / "text.txt").write_bytes(b"caf\xe9")
    assert "not UTF-8" in refused(
        cli.main, "translate", *command, tmp_path / "text.txt"
    )


@pytest.mark.parametrize(
    "specification",
    [
        "nmt:{}/nowhere",
        "nmt-sample:1",
        "nmt-sample:0:{}",
        "nmt-sample:x:{}",
        "nmt-s:1:{}",
    ],
)
def test_run_refuses_translators_that_are_none(refused, tmp_path, specification):
    specification = specification.format(tmp_path)
    assert str(specification.split(":")[-1]) in refused(
        cli.main, "translate", "run", "--translator", specification
    )


@pytest.fixture
def trained(monkeypatch):
    """What the training was asked for, in its place."""
    calls = []

    def train(config, run, resume):
        calls.append((config, run, resume))
        run.save_config(config)
        return {"pairs": 7, "bleu_greedy": 1.25, "bleu_beam_5": 2.5}

    monkeypatch.setattr(translator_trainer, "train_translator", train)
    return calls


def test_train_and_resume(trained, tmp_path, capsys):
    output = ["--output", str(tmp_path / "run")]
    command = ["translate", "train", *output]
    pairs = [str(tmp_path / name) for name in ("a.tsv", "b.tsv")]
    for path in pairs:
        Path(path).touch()
    cli.main([*command, "--data", *pairs, "--reverse", "--set", "training.steps=9"])
    ((config, run, resume),) = trained
    assert (config.data, config.reverse) == (tuple(pairs), True)
    assert config.training.steps == 9
    assert config.model.pieces == 8000
    assert (str(run.directory), resume) == (output[1], False)
    assert "greedy 1.2, 5 beams 2.5" in capsys.readouterr().out
    cli.main([*command, "--resume"])
    assert trained[1][0] == config
    assert trained[1][2]

    run.save_metrics({"pairs": 7, "bleu_greedy": 1.25, "bleu_beam_5": 2.5})
    capsys.readouterr()
    cli.main([*command, "--resume"])
    finished, bleu = capsys.readouterr().out.splitlines()
    assert finished == f"{run.directory}: finished, there is nothing to resume"
    assert "greedy 1.2, 5 beams 2.5" in bleu
    assert len(trained) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--data"),
        (["--data", "a", "--set", "model.heads=3"], "heads=3 does not divide width"),
        (
            ["--data", "a", "--set", "model.name=recurrent", "--set", "model.width=9"],
            "width must be even",
        ),
        (
            ["--data", "a", "--set", "model.size=3"],
            "list of keys in docs/augmentation.md",
        ),
        (["--data", "a", "--set", "model.layers=101"], "model.layers=101"),
        (["--data", "a", "--set", "training.steps=999999999"], "training.steps="),
        (["--data", "a", "--set", "training.buckets=[8,4]"], "buckets must rise"),
        (["--data", "a", "--set", "training.batch_tokens=8"], "last bucket"),
        (
            ["--data", "a", "--set", "training.weight_decay=0.1"],
            "nothing without training.optimizer=adamw",
        ),
        (
            ["--data", "a", "--set", "model.name=recurrent", "--set", "model.heads=2"],
            "model.heads: changes nothing with model.name=recurrent",
        ),
        (["--data", "a", "--set", "data=[b]"], "--set data: is what --data sets"),
        (
            ["--data", "a", "--reverse", "--set", "reverse=false"],
            "--set reverse: is what --reverse sets",
        ),
        (["--resume"], "not the directory of a translation model"),
        (["--resume", "--data", "a"], "does not go with --resume"),
        (["--data", "missing.tsv"], "missing.tsv: cannot be read"),
    ],
)
def test_train_refuses_mistakes(refused, tmp_path, arguments, message):
    assert message in refused(
        cli.main, "translate", "train", "--output", tmp_path / "run", *arguments
    )
    assert not (tmp_path / "run").exists()


def test_train_overwrites_nothing(refused, trained, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("precious")
    command = ["train", "--output", tmp_path / "run", "--data", "a"]
    assert "already holds a run" in refused(cli.main, "translate", *command)
    command[2] = tmp_path / "run" / "config.json"
    assert "is a file" in refused(cli.main, "translate", *command)
    assert command[2].read_text() == "precious"


def test_run_reads_standard_input(opened, tmp_path, capfd, monkeypatch):
    path = tmp_path / "text.txt"
    path.write_text("one two\n")
    with path.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        cli.main(["translate", "run", "--translator", "x"])
    assert capfd.readouterr().out == "two one\n"
