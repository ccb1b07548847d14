"""Tests of qanet.export.portable: the logits of each file's own runtime."""

import json

import numpy as np
import pytest

from qanet.errors import UserError
from qanet.export import portable
from qanet.text.vocabulary import Vocabulary


@pytest.fixture
def examples(rng, trained_reader):
    """The model's inputs for one question on texts of several lengths."""
    sizes = {
        "words": len(trained_reader.vocabulary.words),
        "characters": len(trained_reader.vocabulary.characters),
    }

    def inputs(context, question):
        result = {}
        for name, tensor in trained_reader.model.input.items():
            text, _, kind = name.partition("_")
            length = context if text == "context" else question
            shape = (1, length, *tensor.shape[2:])
            result[name] = rng.integers(1, sizes[kind], shape).astype("int32")
        # A word in common.
        for kind in sizes:
            result[f"question_{kind}"][:, 0] = result[f"context_{kind}"][:, -1]
        return result

    return [inputs(12, 5), inputs(31, 9), inputs(1, 1)]


def check(found, reader, inputs, tolerance):
    expected = reader.model(inputs)
    for name in ("start_logits", "end_logits"):
        np.testing.assert_allclose(found[name], expected[name], atol=tolerance)


def check_vocabulary(directory, reader):
    fields = json.loads((directory / "vocabulary.json").read_text("utf-8"))
    again = Vocabulary.from_fields(fields, read_vectors=None)
    assert again.words == reader.vocabulary.words
    assert again.characters == reader.vocabulary.characters


def test_litert_gives_the_logits(doubting_reader, examples, tmp_path):
    from ai_edge_litert.interpreter import Interpreter

    portable.export_litert(doubting_reader, tmp_path)

    for name, tolerance in (("model.tflite", 1e-4), ("model.int8.tflite", 0.2)):
        read = Interpreter(str(tmp_path / name)).get_signature_runner()
        for inputs in examples:
            check(read(**inputs), doubting_reader, inputs, tolerance)
    check_vocabulary(tmp_path, doubting_reader)


def test_onnx_gives_the_logits(doubting_reader, examples, tmp_path):
    import onnxruntime

    portable.export_onnx(doubting_reader, tmp_path)

    session = onnxruntime.InferenceSession(
        str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    for inputs in examples:
        several = {name: np.repeat(value, 2, axis=0) for name, value in inputs.items()}
        names = [output.name for output in session.get_outputs()]
        found = dict(zip(names, session.run(None, several), strict=True))
        check(found, doubting_reader, several, 1e-4)
    check_vocabulary(tmp_path, doubting_reader)


def test_onnx_without_its_library(trained_reader, monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "tf2onnx", None)

    with pytest.raises(UserError, match=r"pip install 'qanet\[onnx\]'"):
        portable.export_onnx(trained_reader, tmp_path)
