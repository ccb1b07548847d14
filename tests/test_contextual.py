"""A reader with contextual vectors, from files to answers."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_runs import eagerly

from qanet import cli
from qanet.config import load_preset
from qanet.datasets.batches import read_contextual
from qanet.datasets.training_files import check_files, read_training_data
from qanet.errors import UserError
from qanet.frozen import FrozenBERT
from qanet.reader import Reader
from qanet.run import Run
from qanet.training.session import train_run

PUBLIC = Path(__file__).parent / "models" / "public_bert"
QUESTION, CONTEXT = "Where does a live?", "a lives in b, c in d."


@pytest.fixture(scope="module")
def config(tiny_config):
    model = tiny_config.model.model_copy(
        update={"contextual": str(PUBLIC), "contextual_layers": 2}
    )
    training = tiny_config.training.model_copy(update={"steps": 2})
    return tiny_config.model_copy(update={"model": model, "training": training})


@pytest.fixture(scope="module")
def run(config, tmp_path_factory):
    """A finished run."""
    run = Run(tmp_path_factory.mktemp("runs") / "contextual")
    with eagerly(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        train_run(config, run)
    return run


def test_the_run_holds_its_language_model(run, monkeypatch):
    # The directory that it was trained with is not asked for.
    vocabulary = run.load_vocabulary()
    assert vocabulary.contextual.directory == run.vocabulary_directory / "contextual"
    assert vocabulary.contextual.cache is None
    reader = Reader.load(run.directory)
    answer = reader.answer(QUESTION, CONTEXT)
    assert CONTEXT[answer.start : answer.end] == answer.text
    sizes = {name: shape for name, shape in shapes_of(reader)}
    assert sizes["context_contextual"] == sizes["question_contextual"] == (2, 8)


def shapes_of(reader):
    inputs = []

    def noted(batch):
        inputs.append(batch)
        return predict(batch)

    predict, reader.predict = reader.predict, noted
    reader.answer(QUESTION, CONTEXT)
    return [(name, array.shape[2:]) for name, array in inputs[0].items()]


def test_its_answers_depend_on_the_vectors(run, monkeypatch):
    reader = Reader.load(run.directory)
    before = reader.answer(QUESTION, CONTEXT)
    encode = FrozenBERT.encode
    monkeypatch.setattr(
        FrozenBERT,
        "encode",
        lambda *texts: (20 * vectors for vectors in encode(*texts)),
    )
    assert reader.answer(QUESTION, CONTEXT).score != before.score


def test_it_explains_its_answers(run):
    from qanet.serving.explanation import Explainer

    told = Explainer.of(run.load()).explain(QUESTION, CONTEXT)
    assert sum(told.start) == pytest.approx(1, abs=0.01)


def test_training_data_keep_their_vectors(config, tmp_path, monkeypatch):
    data = read_training_data(config, tmp_path)
    assert len(data.contextual.context) == len(data.train.context_words)
    assert len(data.contextual.question) == len(data.train.question_words)
    assert isinstance(data.contextual.context, np.memmap)
    encoder = data.vocabulary.contextual
    assert encoder.cache == tmp_path
    # Those of dev, too, so that nothing fails at the first evaluation.
    monkeypatch.setattr(encoder, "encode", None)
    assert read_contextual(data.dev_examples, data.dev, data.vocabulary)


def test_exports_are_refused(run, refused, tmp_path):
    arguments = ["export", "--model", str(run.directory), "--format", "onnx"]
    line = refused(cli.main, *arguments, "--output", tmp_path / "out")
    assert "model.contextual" in line


def test_packed_data_sets_are_refused(config, tmp_path):
    data = config.data.model_copy(update={"packed": str(tmp_path / "data.npz")})
    with pytest.raises(UserError, match=r"has no texts, which model\.contextual reads"):
        read_training_data(config.model_copy(update={"data": data}), tmp_path)


def test_a_run_goes_on_without_the_directory(run, config):
    model = config.model.model_copy(update={"contextual": "moved away"})
    moved = config.model_copy(update={"model": model})
    check_files(moved, resume=True)
    with pytest.raises(UserError, match="moved away"):
        check_files(moved)


def test_another_training_starts_from_it(run, config, tmp_path):
    """With the language model that the run has a copy of."""
    copy = run.vocabulary_directory / "contextual"
    model = config.model.model_copy(update={"contextual": str(copy)})
    changes = {"start_from": str(run.directory), "steps": 1, "learning_rate": 1e-9}
    training = config.training.model_copy(update=changes)
    again = Run(tmp_path / "run")
    with eagerly():
        train_run(
            config.model_copy(update={"model": model, "training": training}), again
        )
    with np.load(run.weights_path) as expected, np.load(again.weights_path) as found:
        assert found.keys() == expected.keys()
        for name in found:
            np.testing.assert_allclose(found[name], expected[name], atol=1e-7)
    encoders = [one.load_vocabulary().contextual for one in (run, again)]
    assert encoders[0].key == encoders[1].key


def test_a_training_that_starts_from_it_has_its_language_model(
    run, refused, starting_arguments, tmp_path, monkeypatch
):
    started = []
    monkeypatch.setattr(
        "qanet.training.session.train_run",
        lambda config, run, resume: started.append(config),
    )
    given = [*starting_arguments, "--set", f"training.start_from={run.directory}"]
    given += ["--output", str(tmp_path / "run")]
    layers = ["--set", "model.contextual_layers=2"]
    other = tmp_path / "other"
    shutil.copytree(PUBLIC, other)
    with (other / "vocab.txt").open("a", encoding="utf-8") as file:
        file.write("more\n")
    own = run.vocabulary_directory / "contextual"

    line = refused(cli.train, *given)
    assert f"has a language model; set model.contextual={own}" in line
    line = refused(cli.train, *given, "--set", f"model.contextual={PUBLIC}")
    assert "has model.contextual_layers=2, not 3" in line
    line = refused(cli.train, *given, *layers, "--set", f"model.contextual={other}")
    assert f"than {other}; set model.contextual={own}" in line
    assert not started
    for same in (own, PUBLIC):
        cli.train([*given, *layers, "--set", f"model.contextual={same}"])
        assert started.pop().model.contextual == str(same)


def test_packing_is_refused_before_anything_is_read(refused, tiny_arguments, tmp_path):
    arguments = ["pack", *tiny_arguments, "--set", f"model.contextual={PUBLIC}"]
    output = tmp_path / "data.npz"
    assert "model.contextual" in refused(cli.main, *arguments, "--output", output)
    assert not output.exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model.contextual": "missing"}, "missing"),
        ({"model.contextual": PUBLIC}, "model.contextual_layers=3"),
    ],
)
def test_mistakes_are_told_at_once(
    refused, tiny_arguments, tmp_path, settings, message
):
    sets = [part for k, v in settings.items() for part in ("--set", f"{k}={v}")]
    output = tmp_path / "run"
    line = refused(cli.train, *tiny_arguments, *sets, "--output", output)
    assert message in line
    assert not output.exists()


def test_a_reader_of_pieces_has_no_such_setting(refused):
    with pytest.raises(UserError, match="bert has no setting contextual"):
        load_preset("bert-6", [f"model.contextual={PUBLIC}"])
