"""Tests of qanet.commands.pack."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from qanet import cli
from qanet.datasets import training_files
from qanet.datasets.squad import read_squad, write_squad
from qanet.datasets.training_data import load_packed
from qanet.run import Run
from qanet.text.pieces import WordPieces

PUBLIC = Path(__file__).parents[1] / "models" / "public_bert"


def test_the_words_of_the_data_are_kept_unless_told_otherwise(
    tiny_files, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("elsewhere 1 2\nlives 3 4\n", encoding="utf-8")
    arguments = ["pack", "--train", tiny_files.train, "--dev", tiny_files.dev]
    arguments += ["--vectors", vectors, "--output"]
    for output, options, words in (
        ("some.npz", [], ["lives"]),
        ("all.npz", ["--set", "vocabulary.extra_vectors=1"], ["elsewhere", "lives"]),
    ):
        cli.main([str(argument) for argument in [*arguments, output, *options]])
        assert load_packed(output).vocabulary.words[2:] == words
        assert f"{2 + len(words)} word vectors" in capsys.readouterr().out


def test_what_a_training_that_starts_elsewhere_would_refuse(
    refused, tiny_arguments, trained, tmp_path
):
    start = f"training.start_from={trained.directory}"
    arguments = ["--set", start, "--vectors", "glove.txt", "--output", tmp_path / "a"]
    line = refused(cli.main, "pack", *tiny_arguments[:4], *arguments)
    assert f"{start}: brings its vocabulary" in line


def test_a_training_that_starts_elsewhere_brings_its_words(
    tiny_files, trained, tmp_path
):
    """Its vector files are not asked for, they may be gone, nor are its sizes."""
    start = tmp_path / "start"
    shutil.copytree(trained.directory, start)
    config = json.loads((start / "config.json").read_text("utf-8"))
    config["vocabulary"]["vectors"] = ["gone.txt"]
    (start / "config.json").write_text(json.dumps(config), encoding="utf-8")
    output = tmp_path / "data.npz"
    given = ["--set", f"training.start_from={start}"]
    data = ["--train", tiny_files.train, "--dev", tiny_files.dev]
    cli.main(list(map(str, ["pack", *data, "--output", output, *given])))
    words = Run(trained.directory).load_vocabulary().words
    assert load_packed(output).vocabulary.words == words


def test_a_reader_of_pieces_does_not_start_from_one_of_words(
    refused, tiny_arguments, trained, tmp_path
):
    start = f"training.start_from={trained.directory}"
    given = ["--preset", "bert", "--set", start, "--output", tmp_path / "a"]
    line = refused(cli.main, "pack", *tiny_arguments[:4], *given)
    assert f"{start}: is a qanet, which reads words; give its --preset" in line


def test_a_reader_that_reads_texts_is_not_packed_for(
    refused, tiny_arguments, trained, tmp_path
):
    start = tmp_path / "start"
    shutil.copytree(trained.directory, start)
    config = json.loads((start / "config.json").read_text("utf-8"))
    config["model"]["contextual"] = "bert"
    (start / "config.json").write_text(json.dumps(config), encoding="utf-8")
    given = ["--set", f"training.start_from={start}", "--output", tmp_path / "a"]
    line = refused(cli.main, "pack", *tiny_arguments[:4], *given)
    assert f"{start}: has a language model" in line


def test_what_was_read_is_told_of_each_set(tiny_files, tmp_path, capsys):
    """Among it what cannot be learned, before it is carried anywhere."""
    examples = read_squad(tiny_files.train).examples
    examples[0] = replace(examples[0], answers=(), impossible=True)
    train = tmp_path / "train.json"
    write_squad(train, examples)
    data = ["--train", train, "--dev", tiny_files.dev]
    cli.main(list(map(str, ["pack", *data, "--output", tmp_path / "data.npz"])))
    printed = capsys.readouterr().out
    assert f"train: {len(examples)} questions, " in printed
    assert ", 1 without an answer" in printed
    assert "dev: 10 questions, " in printed


def test_weights_are_wanted_where_the_training_is(tiny_files, tmp_path):
    """A data set is packed with the pieces of a public model alone."""
    public = tmp_path / "public"
    shutil.copytree(PUBLIC, public)
    (public / "model.safetensors").unlink()
    output = tmp_path / "data.npz"
    data = ["--train", tiny_files.train, "--dev", tiny_files.dev]
    sizes = (
        "width=8",
        "blocks=2",
        "heads=2",
        "feed_forward=12",
        f"pretrained={public}",
    )
    given = [f"--set=model.{size}" for size in sizes]
    command = ["pack", "--preset", "bert", *data, "--output", output, *given]
    cli.main(list(map(str, command)))
    pieces = WordPieces.load(public).pieces
    assert load_packed(output, "pieces").vocabulary.pieces == pieces


@pytest.mark.parametrize("place", ["file/new", "/proc/new", "/dev/null", "."])
def test_what_could_not_be_written_is_not_begun(
    refused, tiny_files, monkeypatch, tmp_path, place
):
    monkeypatch.setattr(training_files, "read_training_data", None)
    (tmp_path / "file").touch()
    arguments = ["--train", tiny_files.train, "--dev", tiny_files.dev]
    line = refused(cli.main, "pack", *arguments, "--output", tmp_path / place)
    assert f"--output {tmp_path / place}: " in line


@pytest.mark.parametrize("option", ["--vectors", "--set=training.teacher"])
def test_what_is_read_is_not_replaced(refused, tiny_files, tmp_path, option):
    path = tmp_path / "file.npz"
    path.write_text("hours of work")
    arguments = ["--train", tiny_files.train, "--dev", tiny_files.dev, "--output", path]
    given = [f"{option}={path}"] if "=" in option else [option, path]
    line = refused(cli.main, "pack", *arguments, *given)
    assert f"--output {path}: is given for something else" in line
    assert path.read_text() == "hours of work"


def test_what_is_packed_is_not_packed_again(refused, tmp_path):
    given = ["--set", "data.packed=a.npz", "--output", tmp_path / "b.npz"]
    assert "data.packed: is packed already" in refused(cli.main, "pack", *given)


def test_a_missing_file(refused, tmp_path):
    path, output = tmp_path / "train.json", tmp_path / "data.npz"
    line = refused(cli.main, "pack", "--dev", path, "--output", output)
    assert str(path) in line
    assert not output.exists()
