"""Tests of benchmarks/enduring/file_inputs.py: what fails is noticed."""

import io
from pathlib import Path
from random import Random

import numpy as np
import pytest
from enduring import base, file_inputs

from qanet.config import load_preset
from qanet.errors import UserError
from qanet.models.limits import ReadingLimits
from qanet.reader import Reader
from qanet.run import Run
from qanet.text.vocabulary import RESERVED, Vocabulary


class Failing:
    """A reader that fails."""

    vocabulary = Vocabulary([*RESERVED], [*RESERVED], 1)
    limits = ReadingLimits()

    def __getattr__(self, name):
        raise RuntimeError("of the code")


@pytest.fixture(autouse=True)
def files(monkeypatch, tmp_path):
    """Files in the place of those that a model is needed for."""
    (tmp_path / "base").mkdir()
    monkeypatch.chdir(tmp_path / "base")
    base.make_texts()
    run = Run("run")
    run.save_config(load_preset("qanet-tiny"))
    Vocabulary([*RESERVED], [*RESERVED], 1, np.zeros((2, 3), "float16")).save(
        run.vocabulary_directory
    )
    Path("export").mkdir()
    for name in file_inputs.EXPORT_FILES:
        Path("export", name).write_text("{}")
    for path in (run.weights_path, Path("packed.npz"), Path("soft.npz")):
        np.savez(path, a=np.zeros(3), b=np.frombuffer(b"[1]", np.uint8))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def tried(tmp_path):
    """Tries some inputs of a target and tells what is said of them."""

    def try_some(name, count):
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        with getattr(file_inputs, name)(tmp_path / "base", scratch) as attempt:
            return [attempt(Random(number)) for number in range(count)]

    return try_some


@pytest.mark.parametrize("name", ["data_files", "vectors_files"])
def test_what_ends_as_it_should_is_not_told(tried, name):
    assert not any(tried(name, 30))


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("data_files", "qanet.datasets.sources.read_squad"),
        ("data_files", "qanet.evaluation.metrics.score"),
        ("vectors_files", "qanet.text.vectors.read_vectors"),
        ("packed_data_sets", "qanet.datasets.training_files.load_packed"),
        ("run_directories", "qanet.run.Run.load_vocabulary"),
        ("question_files", "qanet.question_file.read_rows"),
    ],
)
def test_what_fails_is_noticed(tried, monkeypatch, name, place):
    def fail(*arguments, **options):
        raise ValueError("of the code")

    monkeypatch.setattr(place, fail)
    with pytest.raises(ValueError, match="of the code"):
        tried(name, 30)


@pytest.mark.parametrize("name", ["question_files", "exports"])
def test_a_reader_that_fails_is_noticed(tried, monkeypatch, name):
    monkeypatch.setattr(Reader, "load", lambda *arguments, **options: Failing())
    with pytest.raises(RuntimeError, match="of the code"):
        tried(name, 30)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("data_files", "qanet.datasets.sources.read_squad"),
        ("vectors_files", "qanet.text.vectors.read_vectors"),
    ],
)
def test_the_refusal_of_what_is_right_is_noticed(tried, monkeypatch, name, place):
    def refuse(*arguments, **options):
        raise UserError("it is wrong")

    monkeypatch.setattr(place, refuse)
    assert any(said and said.startswith("refused") for said in tried(name, 30))


@pytest.mark.parametrize("name", ["packed_data_sets", "run_directories"])
def test_a_refusal_of_several_lines_is_noticed(tried, monkeypatch, name):
    def refuse(*arguments, **options):
        raise UserError("it\nis wrong")

    monkeypatch.setattr("qanet.datasets.training_files.load_packed", refuse)
    monkeypatch.setattr(Run, "load_vocabulary", refuse)
    assert any("not one line" in (said or "") for said in tried(name, 10))


def test_arrays_are_others_in_a_whole_file():
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.frombuffer(b"[1]", np.uint8)}
    file = io.BytesIO()
    np.savez(file, **arrays)
    kinds, missing = set(), 0
    for seed in range(200):
        data = file_inputs.of_arrays(file.getvalue(), Random(seed))
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            found = {name: stored[name] for name in stored.files}
        missing += found.keys() != arrays.keys()
        if "a" in found:
            kinds.add((found["a"].dtype.kind, found["a"].shape))
    assert missing
    assert {kind for kind, _ in kinds} >= {"f", "i", "U", "c"}
    assert {shape for _, shape in kinds} >= {(2, 3), (), (0, 2)}
