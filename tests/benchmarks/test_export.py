"""Tests of benchmarks/export.py, with forms that are the reader itself."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from qanet.reader import Reader
from qanet.run import Run
from qanet.text.tokenizer import words_of

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "export.py"


@pytest.fixture
def script(monkeypatch, trained_model, trained_reader, tmp_path):
    """The script's names; ONNX says something else, and so does one answer."""
    names = runpy.run_path(str(SCRIPT))["main"].__globals__
    monkeypatch.setattr(Run, "load", lambda run, precision: trained_model)
    path = tmp_path / "file"
    path.write_bytes(bytes(2**20))

    def export_forms(trained, directory, forms=names["FORMS"]):
        return dict.fromkeys(forms, path)

    def same(path, trained):
        return trained_reader

    def other(path, trained):
        def predict(inputs):
            outputs = trained_reader.predict(inputs)
            return {name: value * 0 + np.float32(7) for name, value in outputs.items()}

        vocabulary, config = trained_reader.vocabulary, trained_reader.config
        return Reader(predict, vocabulary, config, any_shape=True)

    def strings(path):
        def answer(contexts, questions, top_k=2):
            found = trained_reader.answer_many(
                list(zip(questions, contexts, strict=True)), top_k
            )
            fields = {
                "text": "answer",
                "start": "start",
                "end": "end",
                "score": "score",
            }
            columns = {
                name: np.array([[getattr(a, field) for a in row] for row in found])
                for field, name in fields.items()
            }
            columns["answer"] = np.char.encode(columns["answer"], "utf-8")
            columns["start"][0, 0] += 1
            return columns

        return answer

    monkeypatch.setitem(names, "export_forms", export_forms)
    readers = {"litert": same, "litert_int8": same, "onnx": other, "onnx_int8": other}
    monkeypatch.setitem(names, "READERS", readers)
    monkeypatch.setitem(names, "saved_model", strings)
    return names


def test_parity_counts_what_differs(script, trained_reader, tiny_files):
    options = SimpleNamespace(
        model="run", data=tiny_files.dev, questions=8, forms=script["FORMS"]
    )

    told = script["parity"](options)

    assert told["questions"] == 8
    assert told["saved_model"]["same_answer"] == 7 / 8
    (difference,) = told["saved_model"]["differences"]
    assert difference["keras"] == difference["graph"]
    assert told["litert"]["same_answer"] == 1
    assert told["litert"]["largest_logit_difference"] < 1e-5
    assert told["litert"]["f1"] == told["keras"]["f1"]
    assert told["litert"]["mebibytes"] == 1
    assert told["onnx"]["largest_logit_difference"] > 0.1


def test_latency_times_every_form_on_passages_of_the_data(
    script, monkeypatch, tiny_files
):
    monkeypatch.setitem(script, "SHAPES", ((1, 4), (2, 6)))
    monkeypatch.setitem(script, "encoders_of_bert_base", lambda rows, length: {})
    options = SimpleNamespace(model="run", preset=None, data=tiny_files.dev, rounds=2)

    told = script["latency"](options)

    assert told["milliseconds"].keys() == {"1 x 4", "2 x 6"}
    for of_shape in told["milliseconds"].values():
        assert of_shape.keys() == {"keras", "onnx_network", *script["FORMS"]}
        assert all(0 < of["median"] <= of["p95"] for of in of_shape.values())
        assert of_shape["onnx_network"]["median"] <= of_shape["onnx"]["median"]


def test_questions_of_each_round_are_others_on_cut_passages(script, tiny_files):
    rounds = script["questions_on"](tiny_files.dev, words_of, 2, 6, 3)

    assert [len(pairs) for pairs in rounds] == [2, 2, 2]
    assert len({pair for pairs in rounds for pair in pairs}) == 6
    for pairs in rounds:
        for _, context in pairs:
            assert len(words_of(context)[0]) == 6
