"""Tests of qanet.run: what a run directory must hold, and what it must not."""

import io
import json
import os
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import qanet.run as run_module
from qanet import Reader
from qanet.errors import UserError
from qanet.run import DEFAULT_THRESHOLD, Run, build_run_model
from qanet.text.vocabulary import Vocabulary
from qanet.weights import assign_variables, saved_variables


@pytest.fixture
def run(trained, tmp_path):
    """A copy of the finished run, to be damaged."""
    directory = tmp_path / "run"
    shutil.copytree(trained.directory, directory)
    return Run(directory)


@pytest.fixture(scope="session")
def built_model(trained):
    """The run's model before its weights are loaded."""
    run = Run(trained.directory)
    return build_run_model(run.load_config(), run.load_vocabulary())


@pytest.fixture
def quick(built_model, monkeypatch):
    """Does not build the same model again and again."""
    monkeypatch.setattr(run_module, "build_run_model", lambda *_: built_model)


def refused(run):
    """The one line that loading the run is refused with."""
    with pytest.raises(UserError) as caught:
        Reader.load(run.directory)
    message = str(caught.value)
    assert "\n" not in message
    assert str(run.directory) in message
    return message


def edit_config(run, change):
    config = json.loads(run.config_path.read_text())
    change(config)
    run.config_path.write_text(json.dumps(config))


def test_model_is_rebuilt_from_the_run_directory_alone(
    run, trained_model, trained_reader, tmp_path, monkeypatch
):
    for name in ("checkpoints", "history.csv", "metrics.json", "data.json"):
        path = run.directory / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    # Nor do the data files or the present directory matter.
    edit_config(run, lambda config: config["data"].update(train="gone", dev="gone"))
    monkeypatch.chdir(tmp_path)
    again = Run("run").load()
    for one, other in zip(
        again.model.get_weights(), trained_model.model.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    reader = Reader.of(again)
    question, context = "Where does Zoë live?", "Zoë lives in Rome, Bo in Oslo."
    actual = reader.answer(question, context)
    expected = trained_reader.answer(question, context)
    assert (actual.text, actual.start) == (expected.text, expected.start)
    assert actual.score == pytest.approx(expected.score, rel=1e-4)


def test_a_model_may_compute_in_another_precision_than_it_was_trained_in(run):
    edit_config(run, lambda config: config["training"].update(precision="bfloat16"))
    for precision, expected in ((None, "bfloat16"), ("float32", "float32")):
        trained = run.load(precision)
        assert trained.model.get_layer("attended").compute_dtype == expected
        assert trained.config.training.precision == expected


def test_missing_directory(tmp_path):
    message = refused(Run(tmp_path / "nowhere"))
    assert "not a run directory" in message


def test_directory_that_is_no_run(tmp_path):
    assert "config.json" in refused(Run(tmp_path))


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[1, 2]", b"null", b"\xff\xfe", b'"text"', b"3", b"[" * 100_000],
)
def test_damaged_configuration(run, content):
    run.config_path.write_bytes(content)
    assert "config.json" in refused(run)


def test_configuration_with_an_unknown_key(run):
    edit_config(run, lambda config: config["model"].update(colour="red"))
    assert "qanet has no setting colour" in refused(run)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"words": 3}', b"\xff"])
def test_damaged_vocabulary(run, content):
    (run.vocabulary_directory / "vocabulary.json").write_bytes(content)
    assert "vocabulary.json" in refused(run)


def test_missing_vocabulary(run):
    shutil.rmtree(run.vocabulary_directory)
    assert "vocabulary.json" in refused(run)


def test_missing_weights(run):
    run.weights_path.unlink()
    assert "weights.npz" in refused(run)
    assert "missing" in refused(run)


def npy_bytes(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: b"PK\x03\x04 and nothing more",
        lambda content: b"no archive at all",
        lambda content: npy_bytes(np.zeros(3)),
    ],
    ids=["empty", "half", "last byte", "head only", "text", "a single array"],
)
def test_damaged_weights(run, quick, damage):
    run.weights_path.write_bytes(damage(run.weights_path.read_bytes()))
    assert "weights.npz: damaged" in refused(run)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"threshold": "high"}',
        b'{"threshold": 1.5}',
        b'{"threshold": NaN}',
        b'{"threshold": ' + b"9" * 400 + b"}",
        b"[" * 100_000,
    ],
)
def test_damaged_threshold(run, quick, content):
    run.no_answer_path.write_bytes(content)
    assert "no_answer.json: damaged" in refused(run)


def test_threshold_of_a_run(run):
    assert run.load_threshold() == DEFAULT_THRESHOLD
    run.save_threshold(0.125)
    assert run.load_threshold() == 0.125


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_flipped_bits_in_the_weights_load_or_are_refused(
    trained, tmp_path, built_model, data
):
    content = bytearray((trained.directory / "weights.npz").read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    run = Run(tmp_path)
    run.weights_path.write_bytes(content)
    try:
        run.load_weights(built_model)
    except UserError as error:
        assert "weights.npz" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("model", "width", 12),
        ("model", "feed_forward", 16),
        ("model", "highway_layers", 1),
        ("model", "final_norm", False),
        ("vocabulary", "word_width", 6),
    ],
)
def test_weights_of_another_configuration_are_refused(run, section, key, value):
    edit_config(run, lambda config: config[section].update({key: value}))
    assert "weights.npz: damaged or of another configuration" in refused(run)


def test_weights_of_another_vocabulary_are_refused(run):
    path = run.vocabulary_directory / "vocabulary.json"
    fields = json.loads(path.read_text(encoding="utf-8"))
    fields["words"].append("platypus")
    path.write_text(json.dumps(fields), encoding="utf-8")
    assert "weights.npz" in refused(run)


def stored_arrays(run):
    with np.load(run.weights_path) as file:
        return dict(file)


def test_missing_and_left_over_arrays_are_refused(run, quick):
    arrays = stored_arrays(run)
    name = min(arrays)
    np.savez(run.weights_path, **arrays, extra=np.zeros(2))
    assert "extra" in refused(run)
    del arrays[name]
    np.savez(run.weights_path, **arrays)
    assert name in refused(run)


@pytest.mark.parametrize("kind", ["U3", "complex64", "int64", "datetime64[s]"])
def test_weights_that_are_no_floats_are_refused(run, quick, kind):
    arrays = stored_arrays(run)
    name = min(arrays)
    np.savez(run.weights_path, **arrays | {name: np.zeros(arrays[name].shape, kind)})
    assert f"{name} has numbers of type" in refused(run)


@pytest.mark.parametrize("value", [b'"1.5"', b"NaN", b"1e999", b"9" * 400, b"[]"])
def test_metrics_that_are_no_numbers_are_refused(tmp_path, value):
    run = Run(tmp_path)
    run.metrics_path.write_bytes(b'{"exact_match": 1, "f1": %s, "total": 2}' % value)
    with pytest.raises(UserError, match=r"metrics\.json: damaged"):
        run.load_metrics()


class Bomb:
    """Makes a directory when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_pickled_weights_are_never_loaded(run, quick, tmp_path):
    arrays = stored_arrays(run)
    arrays[min(arrays)] = np.array([Bomb(tmp_path / "fired")], dtype=object)
    np.savez(run.weights_path, **arrays)
    assert "weights.npz" in refused(run)
    assert not (tmp_path / "fired").exists()


def test_pickled_vectors_are_never_loaded(run, tmp_path):
    path = run.vocabulary_directory / "vocabulary.json"
    fields = json.loads(path.read_text(encoding="utf-8")) | {"pretrained": True}
    path.write_text(json.dumps(fields), encoding="utf-8")
    bomb = np.array([Bomb(tmp_path / "fired")], dtype=object)
    np.save(run.vocabulary_directory / "vectors.npy", bomb, allow_pickle=True)
    assert "vectors.npy" in refused(run)
    assert not (tmp_path / "fired").exists()


def test_no_file_of_a_run_is_a_pickle(trained):
    for path in trained.directory.parent.rglob("*.np[yz]"):
        with np.load(path, allow_pickle=False) as arrays:
            assert all(arrays[name].dtype != object for name in arrays.files)


def test_damaged_file_changes_no_variable(built_model, run):
    variables = saved_variables(built_model)
    before = built_model.get_weights()
    arrays = {name: value + 1 for name, value in stored_arrays(run).items()}
    arrays[max(arrays)] = np.zeros((1, 2, 3))
    with pytest.raises(ValueError, match="shape"):
        assign_variables(variables, arrays)
    for one, other in zip(before, built_model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_frozen_vectors_come_from_the_vocabulary_and_are_not_stored_twice(
    run, tiny_config, tmp_path
):
    vectors = np.arange(15, dtype=np.float16).reshape(5, 3)
    words = ["", "<unknown>", "a", "b", "c"]
    vocabulary = Vocabulary(words, ["", "<unknown>", "x"], 4, vectors)
    model = build_run_model(tiny_config, vocabulary)
    table = model.get_layer("embedding").words.table
    np.testing.assert_array_equal(np.asarray(table), vectors)
    run = Run(tmp_path / "other")
    run.save_config(tiny_config)
    vocabulary.save(run.vocabulary_directory)
    run.save_weights(model)
    assert all(array.shape != (5, 3) for array in stored_arrays(run).values())
    again = run.load().model
    for one, other in zip(model.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_run_of_a_former_version_still_answers():
    """Made when `no_answer` was the model's and matrices had an `initializer`."""
    directory = Path(__file__).parent / "former_run"
    reader = Reader.load(directory)
    assert reader.config.data.no_answer
    for case in json.loads((directory / "answers.json").read_text("utf-8")):
        pairs = [(case["question"], case["context"])]
        (found,) = reader.answer_many(pairs, top_k=3)
        places = [[a.text, a.start, a.end] for a in found]
        assert places == [answer[:3] for answer in case["answers"]]
        scores = [answer[3] for answer in case["answers"]]
        np.testing.assert_allclose([a.score for a in found], scores, rtol=1e-4)


def test_weights_that_a_file_could_not_tell_apart_are_refused():
    one, other = (keras.layers.Dense(3, name="same") for _ in range(2))
    for layer in (one, other):
        layer.build((None, 3))
    with pytest.raises(ValueError, match="weights of two layers have one path"):
        saved_variables(keras.Sequential([one, Wrapped(other)]))


class Wrapped(keras.layers.Layer):
    """Whose layer was built outside of it, so that its name is not in the paths."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.built = True
