"""Tests of qanet.teacher."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from qanet import teacher
from qanet.datasets.features import build_features
from qanet.datasets.soft_targets import load_targets
from qanet.datasets.squad import read_squad
from qanet.errors import UserError
from qanet.files import locked
from qanet.teacher import key_of, parts_of, teach


@pytest.fixture
def examples(tiny_files):
    return read_squad(tiny_files.dev).examples


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(teacher, "PART", 4)


def test_the_file_holds_what_the_reader_says(trained_reader, examples, tmp_path):
    output = tmp_path / "new" / "targets.npz"
    teach(trained_reader, examples, "dev.json", output, "key")
    targets = load_targets(output)
    assert targets.data == "dev.json"
    assert len(targets.questions) == len(examples)
    features = build_features(examples)
    expected = trained_reader.logits(examples, features)
    for i, logits in enumerate(expected):
        np.testing.assert_allclose(
            targets.logits_of(i).tokens, logits.tokens, rtol=2e-3, atol=1e-4
        )
        np.testing.assert_array_equal(targets.spans_of(i), features.spans_of(i))
    assert [path.name for path in output.parent.iterdir()] == ["targets.npz"]


def test_what_was_done_is_not_done_again(
    trained_reader, examples, tmp_path, monkeypatch
):
    whole, output = tmp_path / "whole.npz", tmp_path / "targets.npz"
    teach(trained_reader, examples, "d", whole, "key")
    read, asked = trained_reader.logits, []

    def interrupted(part, features):
        asked.append(len(part))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return read(part, features)

    monkeypatch.setattr(trained_reader, "logits", interrupted)
    with pytest.raises(KeyboardInterrupt):
        teach(trained_reader, examples, "d", output, "key")
    assert not output.exists()
    teach(trained_reader, examples, "d", output, "key")
    assert asked == [4, 4, 4, 2]
    assert not parts_of(output).exists()
    for name, value in vars(load_targets(whole)).items():
        np.testing.assert_array_equal(getattr(load_targets(output), name), value)


def test_what_was_whole_when_it_was_stopped_is_not_read_again(
    trained_reader, examples, tmp_path, monkeypatch
):
    output = tmp_path / "targets.npz"

    def interrupted(directory):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(teacher, "shutil", SimpleNamespace(rmtree=interrupted))
        with pytest.raises(KeyboardInterrupt):
            teach(trained_reader, examples, "d", output, "key")
    # Of all parts the key goes last.
    assert [path.name for path in parts_of(output).iterdir()] == ["key.json"]
    whole = output.read_bytes()
    monkeypatch.setattr(trained_reader, "logits", None)
    teach(trained_reader, examples, "d", output, "key")
    assert output.read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == ["targets.npz"]


@pytest.mark.parametrize("key", ['"key"', None], ids=["other data", "no key"])
def test_another_file_beside_parts_is_left_alone(
    trained_reader, examples, tmp_path, key
):
    output = tmp_path / "targets.npz"
    count = 3 if key else len(examples)
    teach(trained_reader, examples[:count], "d", output, "key")
    parts_of(output).mkdir()
    if key:
        (parts_of(output) / "key.json").write_text(key)
    before = output.read_bytes()
    with pytest.raises(UserError, match="is there already"):
        teach(trained_reader, examples, "d", output, "key")
    assert output.read_bytes() == before


def test_a_damaged_part_is_made_again(trained_reader, examples, tmp_path):
    whole, output = tmp_path / "whole.npz", tmp_path / "targets.npz"
    teach(trained_reader, examples, "d", whole, "key")
    parts_of(output).mkdir()
    (parts_of(output) / "key.json").write_text('"key"')
    (parts_of(output) / "000000004.npz").write_bytes(whole.read_bytes()[:-99])
    teach(trained_reader, examples, "d", output, "key")
    assert output.read_bytes() == whole.read_bytes()


def test_a_question_that_is_too_long_is_told_before_anything_is_read(
    trained_reader, examples, tmp_path, monkeypatch
):
    long = replace(examples[-1], question="Who? " * 600)
    monkeypatch.setattr(trained_reader, "logits", None)
    with pytest.raises(UserError, match=f"{long.id} has 1200 words and signs"):
        teach(trained_reader, [*examples, long], "d", tmp_path / "t.npz", "key")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b'"other"', b"{"])
def test_parts_of_another_teacher_are_refused(
    trained_reader, examples, tmp_path, content
):
    output = tmp_path / "targets.npz"
    parts_of(output).mkdir()
    (parts_of(output) / "key.json").write_bytes(content)
    with pytest.raises(UserError, match=r"targets\.npz\.parts: .* remove it"):
        teach(trained_reader, examples, "d", output, "key")
    assert not output.exists()


@pytest.mark.parametrize("name", ["000000000.npz", "thesis.txt"])
def test_a_directory_of_other_files_is_left_alone(
    trained_reader, examples, tmp_path, name
):
    output = tmp_path / "targets.npz"
    parts_of(output).mkdir()
    (parts_of(output) / name).write_text("mine")
    with pytest.raises(
        UserError, match=r"targets\.npz\.parts: holds files, but no key"
    ):
        teach(trained_reader, examples, "d", output, "key")
    assert [path.name for path in parts_of(output).iterdir()] == [name]
    assert not output.exists()


def test_an_unfinished_key_is_no_other_file(trained_reader, examples, tmp_path):
    output = tmp_path / "targets.npz"
    parts_of(output).mkdir()
    (parts_of(output) / ".key.json.0123abcd.tmp").write_text("")
    teach(trained_reader, examples, "d", output, "key")
    assert output.exists()
    assert not parts_of(output).exists()


def test_a_directory_that_another_teacher_holds_is_left_alone(
    trained_reader, examples, tmp_path
):
    output = tmp_path / "targets.npz"
    parts_of(output).mkdir()
    with locked(parts_of(output)), pytest.raises(UserError, match="another process"):
        teach(trained_reader, examples, "dev.json", output, "key")
    assert not list(parts_of(output).iterdir())


def test_the_key_tells_readers_and_data_apart(trained, examples, tmp_path):
    run, other = trained.directory, tmp_path / "run"
    other.mkdir()
    (other / "config.json").write_bytes((run / "config.json").read_bytes())
    with pytest.raises(UserError, match=r"weights\.npz: cannot be read"):
        key_of([other], examples)
    (other / "weights.npz").write_bytes(b"others")
    (other / "vocabulary").mkdir()
    (other / "vocabulary" / "vocabulary.json").write_bytes(b"words")
    export = tmp_path / "export"
    export.mkdir()
    for name in ("reader.json", "model.onnx"):
        (export / name).write_text(name)
    keys = [
        key_of([run], examples),
        key_of([run], examples[1:]),
        key_of([other], examples),
        key_of([export], examples),
        key_of([run, other], examples),
    ]
    (other / "vocabulary" / "vocabulary.json").write_bytes(b"other words")
    keys.append(key_of([other], examples))
    assert len(set(keys)) == 6
    assert key_of([run], list(examples)) == keys[0]
