"""Tests of qanet.models.elmo_weights: vectors are those of the layout in NumPy."""

import copy
import json

import h5py
import keras
import numpy as np
import pytest
from made_bilm import OPTIONS, layers_with_marks, random_arrays, small_config

from qanet.errors import UserError
from qanet.models.bilm import build_bilm, build_language_model
from qanet.models.character_ids import character_ids
from qanet.models.elmo_weights import (
    load_bilm,
    read_options,
    read_weights,
    save_bilm,
)

pytestmark = pytest.mark.usefixtures("fixed_seed")

SENTENCES = [
    ["The", "Zoë", "of", "東京", "x" * 70],
    ["One"],
    ["Two", "words"],
    [],
]
BIAS = "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/B"


@pytest.fixture
def arrays(rng):
    return random_arrays(rng)


@pytest.fixture
def written(tmp_path, arrays):
    """Writes a directory in the public layout, with other options or data sets."""

    def write(options=OPTIONS, **changes):
        with h5py.File(tmp_path / "weights.hdf5", "w") as file:
            for name, array in {**arrays, **changes}.items():
                if array is not None:
                    file[name] = array
        (tmp_path / "options.json").write_text(json.dumps(options))
        return tmp_path

    return write


def changed(section, **values):
    options = copy.deepcopy(OPTIONS)
    options[section].update(values)
    return options


def padded(sentences, length):
    characters = np.zeros((len(sentences), length, 50), "int32")
    for row, sentence in zip(characters, sentences, strict=True):
        row[: len(sentence)] = character_ids(sentence)
    return characters


@pytest.mark.parametrize("length", [5, 8])
def test_vectors_are_those_of_the_layout(written, arrays, length, compiled):
    model = compiled(load_bilm(written()))
    found = keras.ops.convert_to_numpy(model(padded(SENTENCES, length)))
    assert found.shape == (4, length, 3, 8)
    for vectors, sentence in zip(found, SENTENCES, strict=True):
        # The vectors of the marks are left out.
        expected = layers_with_marks(sentence, arrays)[1:-1]
        np.testing.assert_allclose(vectors[: len(sentence)], expected, atol=1e-5)
        assert not vectors[len(sentence) :].any()


def test_clipping_changes_the_vectors(arrays):
    """Otherwise the tests above would not see whether it is done."""
    sentence = SENTENCES[0]
    expected = layers_with_marks(sentence, arrays)
    for name in ("cell_clip", "proj_clip"):
        options = changed("lstm", **{name: 100.0})
        found = layers_with_marks(sentence, arrays, options)
        assert np.abs(found - expected).max() > 0.01


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("lstm", "use_skip_connections", False),
        ("char_cnn", "activation", "tanh"),
        ("char_cnn", "n_characters", 261),
    ],
)
def test_other_options(written, arrays, section, name, value, compiled):
    options = changed(section, **{name: value})
    model = compiled(load_bilm(written(options)))
    found = keras.ops.convert_to_numpy(model(padded(SENTENCES[:1], 5)))[0]
    expected = layers_with_marks(SENTENCES[0], arrays, options)[1:-1]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_doubles_and_halves_are_read_too(written, arrays):
    name = "CNN_proj/W_proj"
    for kind in ("f8", "f2"):
        model = load_bilm(written(**{name: arrays[name].astype(kind)}))
        kernel = np.array(model.get_layer("projection").kernel)
        np.testing.assert_allclose(kernel, arrays[name], atol=1e-3)


@pytest.mark.parametrize("directory", ["directory", "directory/that/is/new"])
def test_what_is_stored_is_read_again(tmp_path, rng, directory):
    config = small_config(dropout=0.25, residual=False, activation="tanh")
    model = build_language_model(config, words=9)
    for weight in model.weights:
        weight.assign(rng.normal(size=weight.shape))
    save_bilm(tmp_path / directory, model, config)
    assert {path.name for path in (tmp_path / directory).iterdir()} == {
        "options.json",
        "weights.hdf5",
    }
    assert read_options(tmp_path / directory) == config
    again = build_language_model(config, words=9)
    read_weights(again, tmp_path / directory)
    count = 0
    for one, other in zip(again.weights, model.weights, strict=True):
        if "softmax" not in one.path and "seed" not in one.path:
            np.testing.assert_array_equal(one, other, err_msg=one.path)
            count += 1
    assert count == 1 + 2 * 2 + 2 * 4 + 2 + 2 * 3
    # The same weights as a source of vectors.
    load_bilm(tmp_path / directory)


def test_what_is_stored_has_the_public_layout(tmp_path, arrays, written):
    directory = written()
    model = load_bilm(directory)
    save_bilm(tmp_path / "again", model, read_options(directory))
    with h5py.File(tmp_path / "again" / "weights.hdf5") as file:
        found = {}
        file.visititems(
            lambda name, part: (
                found.update({name: part[...]}) if name in arrays else None
            )
        )
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == "float32"
        np.testing.assert_array_equal(found[name], array, err_msg=name)
    stored = json.loads((tmp_path / "again" / "options.json").read_text())
    assert {name: stored[name] for name in OPTIONS} == OPTIONS


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({BIAS: None}, f"has no data set {BIAS}"),
        ({BIAS: np.ones(7, "f4")}, rf"{BIAS} has shape \(7,\), not \(24,\)"),
        ({"CNN/x": np.ones(1, "f4")}, "has a data set CNN/x, for which"),
        ({BIAS: np.ones(24, "i4")}, f"{BIAS} does not hold floating point numbers"),
        ({BIAS: ["a"] * 24}, f"{BIAS} does not hold floating point numbers"),
        ({BIAS: np.full(24, np.nan)}, f"{BIAS} has numbers that are not finite"),
        ({BIAS: h5py.SoftLink("/char_embed")}, f"has no data set {BIAS}"),
        ({BIAS: h5py.ExternalLink("o", "/B")}, f"has no data set {BIAS}"),
        ({BIAS: np.dtype("f4")}, f"{BIAS} does not hold floating point numbers"),
    ],
    ids=range(9),
)
def test_a_data_set_that_does_not_fit_is_named(written, changes, message):
    with pytest.raises(UserError, match=rf"weights\.hdf5: {message}") as error:
        load_bilm(written(**changes))
    assert "\n" not in str(error.value)


def test_a_data_set_in_another_file_is_not_read(written, tmp_path, arrays):
    directory = written(**{BIAS: None})
    (tmp_path / "secret").write_bytes(arrays[BIAS].tobytes())
    with h5py.File(directory / "weights.hdf5", "a") as file:
        kept = [(str(tmp_path / "secret"), 0, 24 * 4)]
        file.create_dataset(BIAS, (24,), "f4", external=kept)
    with pytest.raises(UserError, match=f"{BIAS} is kept in another file"):
        load_bilm(directory)


def test_nothing_is_read_of_a_file_that_does_not_fit(written):
    model = build_bilm(small_config())
    before = [np.array(weight) for weight in model.weights]
    with pytest.raises(UserError):
        read_weights(model, written(**{BIAS: np.ones(7, "f4")}))
    for weight, value in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(weight, value)


def test_damaged_and_missing_files_are_named(written, tmp_path):
    path = written() / "weights.hdf5"
    content = path.read_bytes()
    for damaged in (b"", b"no such file", content[: len(content) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"weights\.hdf5: cannot be read") as error:
            load_bilm(tmp_path)
        assert "\n" not in str(error.value)
    path.unlink()
    with pytest.raises(UserError, match=r"weights\.hdf5: is missing"):
        load_bilm(tmp_path)
    (tmp_path / "options.json").unlink()
    with pytest.raises(UserError, match=r"has no options\.json; give the directory"):
        load_bilm(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not the options of an ELMo model"),
        ("[]", "not the options of an ELMo model"),
        ('"char_cnn"', "not the options of an ELMo model"),
        ("{}", "it has no 'char_cnn'"),
        (changed("lstm", dim=4), "units=4 must be more than projection=4"),
        (changed("lstm", dim="big"), "units='big'"),
        (changed("lstm", cell_clip=None), "cell_clip=None"),
        (changed("lstm", n_layers=0), "layers=0"),
        (changed("char_cnn", filters=[[51, 9]]), "filters"),
        (changed("char_cnn", filters=[[1, 2]]), "all filters=2 must be more than"),
        (changed("char_cnn", activation="gelu"), "activation='gelu'"),
        (changed("char_cnn", embedding=3), "not the options of an ELMo model"),
        (changed("char_cnn", n_characters=60), "n_characters are 50 and 60; only"),
        (changed("char_cnn", max_characters_per_token=17), "are 17 and 262; only"),
    ],
    ids=range(14),
)
def test_options_that_are_not_read(tmp_path, text, message):
    if not isinstance(text, str):
        text = json.dumps(text)
    (tmp_path / "options.json").write_text(text)
    with pytest.raises(UserError, match=message) as error:
        read_options(tmp_path)
    assert str(error.value).startswith(str(tmp_path / "options.json"))
    assert "\n" not in str(error.value)
