"""Tests of benchmarks/export.py, with forms that are the reader itself."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from qanet.run import Run

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

    def other(path):
        def predict(inputs):
            outputs = trained_reader.predict(inputs)
            return {name: value * 0 + np.float32(7) for name, value in outputs.items()}

        return predict

    def strings(path):
        def answer(contexts, questions, top_k):
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
    networks = dict.fromkeys(
        ("litert", "litert_int8"), lambda path: trained_reader.predict
    )
    monkeypatch.setitem(
        names, "NETWORKS", networks | {"onnx": other, "onnx_int8": other}
    )
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
