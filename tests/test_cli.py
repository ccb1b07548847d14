"""Tests of qanet.cli: what each door accepts, prints and refuses."""

import json

import pytest

from qanet import cli
from qanet.datasets.squad import read_squad
from qanet.reader import Reader

QUESTION = "Where does Zoë live?"
CONTEXT = "Bo’ lives in Rome.\nZoë lives in São Paulo.\n"
# What it takes to compute with a model.
HEAVY = ("tensorflow", "keras", "jax", "torch", "tensorflow_datasets")


@pytest.mark.parametrize(
    "command",
    [
        ["train.py"],
        ["evaluate.py"],
        ["-m", "qanet"],
        ["-m", "qanet", "answer"],
        ["-m", "qanet", "features"],
        ["-m", "qanet", "augment"],
        ["-m", "qanet", "translate"],
        ["-m", "qanet", "translate", "train"],
        ["-m", "qanet", "translate", "run"],
    ],
    ids=" ".join,
)
def test_help_waits_for_nothing_heavy(door, command):
    process = door(*command, "--help", blocked=(*HEAVY, "numpy"))
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("usage: ")
    assert process.stderr == ""


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (cli.train, ["--no-such-option"]),
        (cli.evaluate, ["--data", "dev.json"]),
        (cli.evaluate, ["--model", "run"]),
        (cli.evaluate, ["--model", "a", "--predictions", "b", "--data", "c"]),
        (cli.main, []),
        (cli.main, ["no-such-command"]),
        (cli.main, ["answer", "--model", "run"]),
        (
            cli.main,
            "answer --model a --context-file b --question c --top-k 0".split(),
        ),
        (cli.main, ["augment", "--input", "train.json"]),
        (cli.main, ["augment", "--threshold", "1.5"]),
        (
            cli.main,
            "augment --input a --output b --forward c --backward d --seed x".split(),
        ),
    ],
)
def test_wrong_usage_ends_with_code_2(command, arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        command(arguments)
    assert caught.value.code == 2
    assert "usage: " in capsys.readouterr().err


def test_ctrl_c_ends_without_a_traceback(monkeypatch, capsys, tmp_path):
    def interrupted(run):
        raise KeyboardInterrupt

    monkeypatch.setattr(Reader, "load", interrupted)
    path = tmp_path / "context.txt"
    path.write_text("A passage.")
    arguments = ["answer", "--model", "run", "--question", "who?"]
    with pytest.raises(SystemExit) as caught:
        cli.main([*arguments, "--context-file", str(path)])
    assert caught.value.code == 130
    assert capsys.readouterr().err == "stopped\n"


def test_a_mistake_prints_one_line_in_a_real_process(door, tmp_path):
    path = tmp_path / "dev.json"
    path.write_text('{"data": [{"title": "Kraków", "paragraphs": 3}]}', "utf-8")
    process = door("evaluate.py", "--predictions", path, "--data", path)
    assert process.returncode == 2
    assert process.stdout == ""
    (line,) = process.stderr.splitlines()
    assert line.startswith("error: ")


def test_trains_and_evaluates_on_jax_where_tensorflow_cannot_be_imported(
    door, tiny_arguments, tiny_files, tmp_path
):
    run = tmp_path / "run"
    packed = tmp_path / "data.npz"
    jax = {"backend": "jax", "blocked": ["tensorflow"]}
    arguments = ["--preset", "qanet-tiny", *tiny_arguments, "--output", packed]
    process = door("-m", "qanet", "features", *arguments)
    assert process.returncode == 0, process.stderr
    assert f"{packed}: 25 questions to train on, 10 of dev" in process.stdout
    settings = tiny_arguments[4:]  # Without the two files.
    process = door("train.py", "--features", packed, *settings, "--output", run, **jax)
    assert process.returncode == 0, process.stderr
    assert len((run / "history.csv").read_text().splitlines()) == 1 + 3
    assert len(list((run / "checkpoints").iterdir())) == 2

    process = door("evaluate.py", "--model", run, "--data", tiny_files.dev, **jax)
    assert process.returncode == 0, process.stderr
    metrics = json.loads((run / "metrics.json").read_text())
    assert json.loads(process.stdout.splitlines()[-1]) == metrics
    assert metrics["total"] == 10
    assert sorted(path.name for path in (run / "evaluation").iterdir()) == [
        "metrics.json",
        "nbest.json",
        "predictions.json",
    ]
    # What JAX has trained, TensorFlow reads.
    read = Reader.load(run)
    example = read_squad(tiny_files.dev).examples[0]
    predictions = json.loads((run / "evaluation" / "predictions.json").read_text())
    assert (
        read.answer(example.question, example.context).text == (predictions[example.id])
    )
