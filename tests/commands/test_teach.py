"""Tests of qanet.commands.teach, and of a training with what it writes."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from qanet import cli
from qanet.datasets.features import build_features
from qanet.datasets.soft_targets import fingerprint, load_targets
from qanet.datasets.squad import read_squad, write_squad
from qanet.ensemble import Ensemble
from qanet.reader import Reader


def test_a_student_learns_from_the_file(
    trained, tiny_files, tiny_arguments, tmp_path, capsys, uncompiled
):
    output, run = tmp_path / "teacher.npz", tmp_path / "student"

    def command(*arguments):
        cli.main([str(argument) for argument in arguments])
        return capsys.readouterr()

    said = command(
        *("teach", "--model", trained.directory, trained.directory),
        *("--train", tiny_files.train, "--output", output),
    )
    count = len(read_squad(tiny_files.train).examples)
    assert said.out.startswith(f"{output}: {count} questions, ")

    said = command(
        *("train", *tiny_arguments, "--output", run),
        *("--set", f"training.teacher={output}", "--set", "training.steps=2"),
    )
    assert f"teacher: {output}" in said.err

    def losses(directory):
        lines = (directory / "history.csv").read_text().splitlines()
        column = lines[0].split(",").index("loss")
        return [float(line.split(",")[column]) for line in lines[1:]]

    # The same batches and initial weights, but most of the loss is the teacher's.
    assert losses(run)[0] != pytest.approx(losses(trained.directory)[0], rel=1e-3)


def test_several_readers_teach_as_one(two_readers, tiny_files, tmp_path):
    data, output = str(tiny_files.dev), tmp_path / "teacher.npz"
    command = ["teach", "--model", "run", "other", "--train", data]
    cli.main([*command, "--output", str(output)])
    targets = load_targets(output)
    examples = read_squad(tiny_files.dev).examples
    features = build_features(examples)
    both = Ensemble(two_readers).logits(examples, features)
    alone = two_readers[0].logits(examples, features)
    close = {"rtol": 2e-3, "atol": 1e-4}
    for i, (expected, first) in enumerate(zip(both, alone, strict=True)):
        found = targets.logits_of(i).tokens
        np.testing.assert_allclose(found, expected.tokens, **close)
        assert not np.allclose(found, first.tokens, **close)


def test_what_several_readers_began_the_first_alone_does_not_end(
    refused, two_readers, tiny_files, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(Ensemble, "logits", interrupt)
    output = str(tmp_path / "teacher.npz")
    command = ["--train", str(tiny_files.dev), "--output", output, "--quiet"]
    with pytest.raises(SystemExit):
        cli.main(["teach", "--model", "run", "other", *command])
    capsys.readouterr()
    line = refused(cli.main, "teach", "--model", "run", *command)
    assert "holds parts of another teacher" in line


def test_augmented_sets_are_read_too_and_no_question_twice(
    trained, tiny_files, tmp_path
):
    examples = read_squad(tiny_files.train).examples
    paraphrase = replace(examples[1], question="Who, then?")
    augmented, output = tmp_path / "train.es.json", tmp_path / "teacher.npz"
    write_squad(augmented, [examples[0], paraphrase])
    files = [str(path) for path in (tiny_files.train, augmented)]
    model = ["--model", str(trained.directory)]

    cli.main(["teach", *model, "--train", *files, "--output", str(output)])

    targets = load_targets(output)
    assert targets.questions.keys() == {
        *map(fingerprint, examples),
        fingerprint(paraphrase),
    }
    assert targets.data == ", ".join(files)


def test_it_ends_what_was_killed_before_the_parts_were_removed(
    trained, tiny_files, tmp_path, monkeypatch
):
    output = tmp_path / "teacher.npz"
    command = ["teach", "--model", trained.directory, "--train", tiny_files.train]
    command = [str(part) for part in [*command, "--output", output]]
    with monkeypatch.context() as patch:
        patch.setattr("qanet.teacher.shutil", SimpleNamespace(rmtree=interrupt))
        with pytest.raises(SystemExit):
            cli.main(command)
    whole = output.read_bytes()
    monkeypatch.setattr(Reader, "logits", None)

    cli.main(command)

    assert output.read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == ["teacher.npz"]


def interrupt(*_):
    raise KeyboardInterrupt


def test_mistakes_are_told_before_anything_is_read(
    refused, trained, tiny_files, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(Reader, "load", None)
    output = tmp_path / "teacher.npz"
    train = ["--train", tiny_files.train]
    teach = (cli.main, "teach", "--output", output, "--model")
    assert "not a run directory" in refused(*teach, trained.directory, tmp_path, *train)
    absent = ["--train", tmp_path / "absent.json"]
    assert "absent.json: cannot be read" in refused(*teach, trained.directory, *absent)
    with pytest.raises(SystemExit) as exit:
        cli.main(["teach", "--output", "", "--model", "a", "--train", "b"])
    assert exit.value.code == 2
    assert "--output: is empty; give a name" in capsys.readouterr().err
    output.write_text("precious")
    assert "is there already" in refused(*teach, trained.directory, *train)
    assert output.read_text() == "precious"


@pytest.mark.parametrize("content", [None, b"no soft targets"])
def test_a_teacher_that_is_none(refused, tiny_arguments, tmp_path, content):
    path = tmp_path / "teacher.npz"
    if content:
        path.write_bytes(content)
    arguments = [*tiny_arguments, "--output", tmp_path / "run"]
    line = refused(cli.train, *arguments, "--set", f"training.teacher={path}")
    assert f"{path}: " in line
    assert not (tmp_path / "run").exists()
