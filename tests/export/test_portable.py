"""Tests of qanet.export.portable: the logits of each file's own runtime."""

import json

import keras
import numpy as np
import onnx
import pytest

from qanet.errors import UserError
from qanet.export import portable
from qanet.models.registry import MODELS, with_attention
from qanet.onnx_reader import NETWORK_FILE, load_export
from qanet.run import TrainedModel, build_run_model
from qanet.text.vocabulary import Vocabulary


@pytest.fixture
def examples(rng, trained_model):
    """The model's inputs for one question on texts of several lengths."""
    sizes = {
        "words": len(trained_model.vocabulary.words),
        "characters": len(trained_model.vocabulary.characters),
    }

    def inputs(context, question):
        result = {}
        for name, tensor in trained_model.model.input.items():
            text, _, kind = name.partition("_")
            length = context if text == "context" else question
            shape = (1, length, *tensor.shape[2:])
            result[name] = rng.integers(1, sizes[kind], shape).astype("int32")
        # A word in common.
        for kind in sizes:
            result[f"question_{kind}"][:, 0] = result[f"context_{kind}"][:, -1]
        return result

    return [inputs(12, 5), inputs(31, 9), inputs(1, 1)]


@pytest.fixture(scope="module", params=["qanet", "aoa-cloze"])
def exported(request, doubting_model):
    """A model of convolutions and attention, and a recurrent one, untrained."""
    if request.param == "qanet":
        return doubting_model
    settings = MODELS[request.param].settings(units=5, width=8)
    config = doubting_model.config
    data = config.data.model_copy(update={"answer_limit": 1, "no_answer": False})
    config = config.model_copy(update={"model": settings, "data": data})
    model = build_run_model(config, doubting_model.vocabulary)
    return TrainedModel(model, doubting_model.vocabulary, config)


@pytest.fixture(scope="module", params=["qanet", "aoa-cloze"])
def wide(request, doubting_model):
    """The same with matrices that are large enough for the converter's 8 bits."""
    config = doubting_model.config
    if request.param == "qanet":
        sizes = {"width": 96, "feed_forward": 96}
        settings = config.model.model_copy(update=sizes)
    else:
        settings = MODELS[request.param].settings(units=64, width=64)
    data = config.data.model_copy(update={"answer_limit": 1})
    config = config.model_copy(update={"model": settings, "data": data})
    keras.utils.set_random_seed(7)
    model = build_run_model(config, doubting_model.vocabulary)
    random = np.random.default_rng(7)
    for variable in model.trainable_variables:
        noise = random.normal(scale=0.1, size=variable.shape)
        variable.assign(np.array(variable) + noise.astype("float32"))
    return TrainedModel(model, doubting_model.vocabulary, config)


@pytest.fixture(scope="module")
def networks(exported):
    """The files of its networks, by their names; they are the same for all bits."""
    return {}


@pytest.fixture
def converted_once(networks, monkeypatch):
    trace = portable._trace

    def once(model, path):
        if path.name not in networks:
            trace(model, path)
            networks[path.name] = path.read_bytes()
        path.write_bytes(networks[path.name])

    monkeypatch.setattr(portable, "_trace", once)


def check(found, trained, inputs, tolerance):
    expected = trained.model(inputs)
    for name in ("start_logits", "end_logits"):
        np.testing.assert_allclose(found[name], expected[name], atol=tolerance)


def check_vocabulary(directory, trained):
    fields = json.loads((directory / "vocabulary.json").read_text("utf-8"))
    again = Vocabulary.from_fields(fields, read_vectors=None)
    assert again.words == trained.vocabulary.words
    assert again.characters == trained.vocabulary.characters


@pytest.mark.parametrize("bits", [16, 8])
def test_smaller_words_go_with_a_network_in_half_precision(
    doubting_model, tmp_path, bits
):
    portable.export_onnx(doubting_model, tmp_path, bits)
    weights = onnx.load(tmp_path / NETWORK_FILE).graph.initializer
    kinds = {weight.data_type for weight in weights}
    assert (onnx.TensorProto.FLOAT16 in kinds) == (bits < 16)


def test_litert_gives_the_logits(wide, examples, tmp_path):
    from ai_edge_litert.interpreter import Interpreter

    portable.export_litert(wide, tmp_path)

    # A share of how far the logits lie apart.
    spread = np.ptp(wide.model(examples[1])["start_logits"][0, -31:])
    files, kinds = [], []
    for name, share in (("model.tflite", 1e-4), ("model.int8.tflite", 0.05)):
        files.append(tmp_path / name)
        interpreter = Interpreter(str(files[-1]))
        read = interpreter.get_signature_runner()
        for inputs in examples:
            check(read(**inputs), wide, inputs, share * float(spread))
        kinds.append({tensor["dtype"] for tensor in interpreter.get_tensor_details()})
    assert [np.int8 in found for found in kinds] == [False, True]
    whole, small = (path.stat().st_size for path in files)
    assert small < 0.6 * whole
    check_vocabulary(tmp_path, wide)


@pytest.mark.parametrize(("bits", "share"), [(16, 0.002), (8, 0.02), (4, 0.3)])
def test_onnx_gives_the_logits(
    exported, examples, tmp_path, bits, share, converted_once
):
    portable.export_onnx(exported, tmp_path, bits)

    export = load_export(tmp_path)
    attending = with_attention(exported.model, exported.config.model)
    # A share of how far the logits lie apart.
    spread = np.ptp(exported.model(examples[1])["start_logits"][0, -31:])
    tolerance = max(1e-4, share * float(spread))
    for inputs in examples:
        several = {name: np.repeat(value, 2, axis=0) for name, value in inputs.items()}
        given = {}
        for text in ("context", "question"):
            table = {n: several[f"{text}_{n}"] for n in ("words", "characters")}
            flat = {n: part.reshape(-1, *part.shape[2:]) for n, part in table.items()}
            for name, column in export.vocabulary.columns_of(flat).items():
                shape = (*table["words"].shape, *column.shape[1:])
                given[f"{text}_{name}"] = column.reshape(shape)
        found = export.predict(given)
        check(found, exported, several, tolerance)
        attention = attending(several)["attention"]
        np.testing.assert_allclose(found["attention"], attention, atol=share)
    check_vocabulary(tmp_path, exported)


def test_words_of_odd_width_have_no_4_bits(trained_model, tmp_path):
    settings = MODELS["aoa-cloze"].settings(units=5, width=9)
    config = trained_model.config.model_copy(update={"model": settings})
    model = build_run_model(config, trained_model.vocabulary)
    trained = TrainedModel(model, trained_model.vocabulary, config)

    with pytest.raises(UserError, match="a word has 9 numbers here"):
        portable.export_onnx(trained, tmp_path, bits=4)
    assert list(tmp_path.iterdir()) == []


def test_onnx_without_its_library(trained_model, monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "tf2onnx", None)

    with pytest.raises(UserError, match=r"pip install 'qanet\[onnx\]'"):
        portable.export_onnx(trained_model, tmp_path)
