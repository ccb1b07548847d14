"""Tests of qanet.models.prediction."""

import gc
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest

from qanet.models.prediction import any_shape, prediction
from qanet.reader import Reader

for_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="is for TensorFlow"
)
PAIRS = [
    ("Where does Zoë live?", "Zoë lives in São Paulo."),
    ("Who?", "Bo’ lives in Rome. " * 9),
    ("?", "東京"),
]


def test_models_that_share_layers_compute_at_the_same_time(rng):
    """As answers and what explains them do in the server."""
    x = keras.Input((3,))
    shared = keras.layers.Dense(4)(x)
    models = [keras.Model(x, keras.layers.Dense(n)(shared)) for n in (2, 5)]
    batch = rng.normal(size=(6, 3)).astype("float32")
    expected = [keras.ops.convert_to_numpy(model(batch)) for model in models]
    functions = [prediction(model) for model in models]

    def compute(i):
        return functions[i % 2](batch)

    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(compute, range(400)))

    for i, outputs in enumerate(found):
        np.testing.assert_allclose(outputs, expected[i % 2], rtol=1e-5)


@for_tensorflow
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


@for_tensorflow
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


@for_tensorflow
def test_the_graphs_of_readers_that_are_gone_are_gone(trained_model):
    """TensorFlow keeps those with a gradient of their own; a server would grow."""

    def graphs_after_one_more():
        Reader.of(trained_model, as_they_come=True).answer(*PAIRS[0])
        gc.collect()
        return sum(type(thing).__name__ == "FuncGraph" for thing in gc.get_objects())

    first = graphs_after_one_more()
    # Fewer, where something of other tests has gone meanwhile.
    assert graphs_after_one_more() <= first
