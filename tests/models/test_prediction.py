"""Tests of qanet.models.prediction."""

import keras
import numpy as np
import pytest

from qanet.models.prediction import any_shape
from qanet.reader import Reader

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="is for TensorFlow"
)
PAIRS = [
    ("Where does Zoë live?", "Zoë lives in São Paulo."),
    ("Who?", "Bo’ lives in Rome. " * 9),
    ("?", "東京"),
]


def test_it_says_what_the_model_says_and_is_traced_once(
    trained_model, monkeypatch, rng
):
    model = trained_model.model
    layer, traced = model.get_layer("embedding"), []
    call = layer.call
    monkeypatch.setattr(
        layer, "call", lambda *a, **k: traced.append(1) or call(*a, **k)
    )
    predict = any_shape(model)

    for batch, context, question in ((1, 5, 3), (2, 17, 3), (3, 1, 8)):
        inputs = {}
        for name, tensor in model.input.items():
            length = context if name.startswith("context") else question
            shape = (batch, length, *tensor.shape[2:])
            inputs[name] = rng.integers(1, 4, shape).astype("int32")
        found = predict(inputs)
        # Of the context and of the question.
        assert len(traced) == 2
        expected = model(inputs, training=False)
        del traced[2:]
        for name in ("start_logits", "end_logits"):
            np.testing.assert_allclose(found[name], expected[name], atol=1e-5)


@pytest.mark.parametrize("name", ["trained_model", "doubting_model"])
def test_the_reader_answers_as_before(name, request):
    trained = request.getfixturevalue(name)
    expected = Reader.of(trained).answer_many(PAIRS, 3)

    found = Reader.of(trained, as_they_come=True).answer_many(PAIRS, 3)

    for some, wanted in zip(found, expected, strict=True):
        assert [(a.start, a.end) for a in some] == [(a.start, a.end) for a in wanted]
        np.testing.assert_allclose(
            [a.score for a in some], [a.score for a in wanted], atol=1e-5
        )
