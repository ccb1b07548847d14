"""Tests of qanet.commands.export."""

import hashlib
import json
import os
import shutil
import signal

import keras
import pytest
import tensorflow as tf

from qanet import cli
from qanet.errors import UserError
from qanet.run import Run


def arguments(output, *more):
    return ["export", "--model", "run", "--output", str(output), *more]


def test_export_writes_a_saved_model(loaded, tmp_path, capsys):
    output = tmp_path / "new" / "1"

    cli.main(arguments(output))

    assert f"written to {output}" in capsys.readouterr().out
    assert [path.name for path in output.parent.iterdir()] == ["1"]
    signatures = tf.saved_model.load(output).signatures
    assert set(signatures) == {"serving_default", "tensors"}
    assert {"README.md", "SHA256SUMS"} < {path.name for path in output.iterdir()}


def test_export_brings_its_card_and_checksums(
    loaded, tiny_files, monkeypatch, tmp_path, capsys
):
    def write(trained, directory, **settings):
        config = trained.config.model_dump(mode="json")
        (directory / "network").write_text(json.dumps(config))

    monkeypatch.setattr("qanet.export.portable.export_onnx", write)
    facts, output = tmp_path / "card.yaml", tmp_path / "1"
    facts.write_text("name: Zoë’s reader", "utf-8")
    cli.main(arguments(output, "--format", "onnx", "--card", str(facts)))
    files = {path.name: path.read_bytes() for path in output.iterdir()}
    assert files["README.md"].decode().startswith("# Zoë’s reader\n")
    sums = files.pop("SHA256SUMS").decode().splitlines()
    assert sums == [
        f"{hashlib.sha256(files[name]).hexdigest()}  {name}" for name in sorted(files)
    ]
    # Where the data lay is not told to whom the reader is given.
    place = str(tiny_files.dev.parent).encode()
    assert not [name for name, content in files.items() if place in content]
    assert str(output) in capsys.readouterr().out


def test_what_was_trained_in_bfloat16_is_exported_in_float32(
    trained, monkeypatch, tmp_path
):
    shutil.copytree(trained.directory, tmp_path / "run")
    run = Run(tmp_path / "run")
    config = run.load_config()
    rough = config.training.model_copy(update={"precision": "bfloat16"})
    run.save_config(config.model_copy(update={"training": rough}))
    seen = []

    def write(trained, directory):
        seen.append((trained.config.training.precision, trained.model.dtype_policy))
        (directory / "network").touch()

    monkeypatch.setattr("qanet.export.saved_model.export_saved_model", write)
    monkeypatch.chdir(tmp_path)
    cli.main(arguments(tmp_path / "1"))
    ((precision, policy),) = seen
    assert (precision, policy.compute_dtype) == ("float32", "float32")


def test_the_bits_of_words_reach_the_export(loaded, monkeypatch, tmp_path):
    seen = []

    def write(trained, directory, bits):
        (directory / "network").touch()
        seen.append(bits)

    monkeypatch.setattr("qanet.export.portable.export_onnx", write)
    cli.main(arguments(tmp_path / "1", "--format", "onnx", "--word-bits", "4"))
    assert seen == [4]


def test_export_refuses_wrong_facts(loaded, refused, tmp_path):
    facts = tmp_path / "card.yaml"
    facts.write_text("colour: red")
    line = refused(cli.main, *arguments(tmp_path / "1", "--card", facts))
    assert f"{facts}: unknown key colour" in line
    assert not (tmp_path / "1").exists()


@pytest.mark.parametrize(
    ("format", "exporter"),
    [
        ("saved_model", "saved_model.export_saved_model"),
        ("litert", "portable.export_litert"),
        ("onnx", "portable.export_onnx"),
    ],
)
def test_export_that_fails_leaves_nothing(
    loaded, refused, monkeypatch, tmp_path, format, exporter
):
    def fail(reader, directory, **settings):
        (directory / "half").write_text("written")
        raise UserError("the disk is full")

    monkeypatch.setattr(f"qanet.export.{exporter}", fail)
    output = tmp_path / "1"

    line = refused(cli.main, *arguments(output, "--format", format))

    assert "the disk is full" in line
    assert list(tmp_path.iterdir()) == []


def test_export_refuses_mistakes(refused, tmp_path):
    (tmp_path / "there").mkdir()
    line = refused(cli.main, *arguments(tmp_path / "there"))
    assert "is there already" in line
    line = refused(cli.main, "export", "--model", tmp_path, "--output", tmp_path / "1")
    assert "not a run directory" in line
    (tmp_path / "reader.json").touch()
    line = refused(cli.main, "export", "--model", tmp_path, "--output", tmp_path / "1")
    assert "is an export; give the run that it was made from" in line
    assert not (tmp_path / "1").exists()


@pytest.mark.parametrize("file", ["saved_model.pb", "model.tflite"])
def test_an_export_for_other_programs_is_no_reader(refused, tmp_path, file):
    (tmp_path / file).touch()
    (tmp_path / "p.txt").write_text("Anna Kov.")
    asked = ("--question", "Who?", "--context-file", tmp_path / "p.txt")
    line = refused(cli.main, "answer", "--model", tmp_path, *asked)
    assert f"has {file}, an export for other programs" in line
    # A run beside which one lies is a run.
    (tmp_path / "config.json").write_text("{")
    line = refused(cli.main, "answer", "--model", tmp_path, *asked)
    assert "config.json: not valid YAML or JSON" in line


@pytest.mark.parametrize("format", ["saved_model", "litert"])
def test_bits_of_words_are_for_onnx(loaded, refused, tmp_path, format):
    more = ["--format", format, "--word-bits", "8"]
    line = refused(cli.main, *arguments(tmp_path / "1", *more))
    assert "--word-bits 8: is for --format onnx" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["file/new", "/proc/new"])
def test_export_that_could_not_be_written_is_not_begun(
    loaded, refused, monkeypatch, tmp_path, place
):
    monkeypatch.setattr(Run, "load", None)  # Cannot be called.
    (tmp_path / "file").touch()
    line = refused(cli.main, *arguments(tmp_path / place))
    assert f"--output {tmp_path / place}: " in line


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        tf.errors.ResourceExhaustedError(None, None, "No space left on device\n at a"),
    ],
)
def test_export_on_a_full_disk(loaded, refused, monkeypatch, tmp_path, error):
    def fail(reader, directory):
        raise error

    monkeypatch.setattr("qanet.export.saved_model.export_saved_model", fail)
    line = refused(cli.main, *arguments(tmp_path / "1"))
    assert f"--output {tmp_path / '1'}: cannot be written: No space left" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="sends itself a signal")
def test_export_that_is_terminated_leaves_nothing(
    loaded, monkeypatch, tmp_path, capsys
):
    def write(reader, directory):
        (directory / "half").write_text("written")
        os.kill(os.getpid(), signal.SIGTERM)
        pytest.fail("goes on")

    monkeypatch.setattr("qanet.export.saved_model.export_saved_model", write)
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments(tmp_path / "1"))
    assert ended.value.code == 143
    assert capsys.readouterr().err == "stopped\n"
    assert list(tmp_path.iterdir()) == []


def test_export_needs_tensorflow(refused, loaded, monkeypatch, tmp_path):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    line = refused(cli.main, *arguments(tmp_path / "1"))
    assert "KERAS_BACKEND=tensorflow" in line


def test_export_knows_its_formats(capsys, tmp_path):
    with pytest.raises(SystemExit) as exit:
        cli.main(arguments(tmp_path / "1", "--format", "pickle"))
    assert exit.value.code == 2
    assert "saved_model" in capsys.readouterr().err
