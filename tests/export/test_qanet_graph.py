"""Tests of qanet.export.qanet_graph: the logits are those of the model."""

import keras
import numpy as np
import onnx
import onnxruntime
import pytest
from keras import ops
from made_models import SIZES, batch, made_examples

from qanet.export.onnx_graph import Graph
from qanet.export.qanet_graph import is_written, qanet_graph
from qanet.models.qanet import QANetConfig
from qanet.models.registry import MODELS, build_model
from qanet.models.words import word_embedding, word_side
from qanet.weights import saved_variables

SMALL = {
    "width": 8,
    "heads": 2,
    "feed_forward": 6,
    "character_width": 4,
    "embedding_encoder": {"blocks": 1, "convolutions": 2, "kernel_size": 4},
    "model_encoder": {"blocks": 2, "convolutions": 1, "kernel_size": 3},
    "survival": 0.8,
    "question_match": True,
}


def session_of(data):
    return onnxruntime.InferenceSession(
        data.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def given_to(session, model, inputs):
    """What a network above words is given where the model is given these inputs."""
    side, folded = word_side(model), word_embedding(model).fold()
    given = {}
    for text in ("context", "question"):
        words, characters = inputs[f"{text}_words"], inputs[f"{text}_characters"]
        numbers = {"folded": folded[words], "words": words, "characters": characters}
        for name, column in side(numbers).items():
            given[f"{text}_{name}"] = ops.convert_to_numpy(column)
    given["question_words"] = inputs["question_words"]
    return {tensor.name: given[tensor.name] for tensor in session.get_inputs()}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"question_match": False},
        {"position_per_block": True, "final_norm": False, "survival": 1.0},
        {"highway_before_projection": False, "passes": 4},
        {"no_answer": True},
    ],
    ids=lambda changes: "-".join(changes) or "as it is",
)
def test_the_logits_are_those_of_the_model(changes, rng, randomise):
    changes = dict(changes)
    no_answer = changes.pop("no_answer", False)
    config = QANetConfig.model_validate(SMALL | changes)
    model = build_model(config, SIZES, no_answer)
    randomise(model)
    weights = {
        path: ops.convert_to_numpy(variable)
        for path, variable in saved_variables(model).items()
    }
    session = session_of(qanet_graph(config, weights, no_answer))
    names = [tensor.name for tensor in session.get_outputs()]
    attention = keras.Model(model.input, MODELS["qanet"].attention(model))

    inputs = batch(made_examples(rng))
    for rows in ([1, 1], [0], [2]):
        # Contexts of one length, questions of several.
        some = {name: array[rows].copy() for name, array in inputs.items()}
        length = np.count_nonzero(some["context_words"][0])
        for name in ("context_words", "context_characters"):
            some[name] = some[name][:, :length]
        if len(rows) == 2:
            for name in ("question_words", "question_characters"):
                some[name][0, 2:] = 0
        expected = model(some) | {"attention": attention(some)}
        values = session.run(names, given_to(session, model, some))
        for name, found in zip(names, values, strict=True):
            np.testing.assert_allclose(
                found, ops.convert_to_numpy(expected[name]), atol=2e-5, err_msg=name
            )


def test_weights_in_half_precision_take_half_the_room(randomise):
    config = QANetConfig.model_validate(SMALL | {"width": 64, "feed_forward": 64})
    model = build_model(config, SIZES)
    randomise(model)
    weights = {
        path: ops.convert_to_numpy(variable)
        for path, variable in saved_variables(model).items()
    }
    whole, half = (qanet_graph(config, weights, False, half) for half in (False, True))
    sizes = [sum(len(c.raw_data) for c in g.graph.initializer) for g in (whole, half)]
    assert sizes[1] < 0.55 * sizes[0]
    rng = np.random.default_rng(1)
    sessions = session_of(whole), session_of(half)
    # Long, so that the signal of far positions is right.
    given = {
        "context_vectors": rng.normal(size=(1, 900, 64)).astype("float32"),
        "question_vectors": rng.normal(size=(1, 4, 64)).astype("float32"),
        "context_spellings": rng.integers(2, 5, (1, 900, 3)).astype("int32"),
        "question_spellings": rng.integers(2, 5, (1, 4, 3)).astype("int32"),
        "question_words": np.ones((1, 4), "int32"),
    }
    for found, expected in zip(*(s.run(None, given) for s in sessions), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0.02, atol=0.02)


@pytest.mark.parametrize(
    "changes", [{"separable": False}, {"attention": "dcn"}, {"heads": 0}]
)
def test_other_settings_are_told_apart(changes):
    assert is_written(QANetConfig.model_validate(SMALL))
    assert not is_written(QANetConfig.model_validate(SMALL | changes))


def test_equal_constants_are_stored_once():
    graph = Graph()
    x = graph.input("x", "float32", ("n", 2))
    for values in ([1.0, 2.0], np.array([1.0, 2.0]), [1, 2]):
        if np.asarray(values).dtype.kind == "f":
            x = graph.add("Add", x, graph.constant(values))
        else:
            x = graph.add("Reshape", x, graph.constant(values))
    model = graph.model({"y": x}, {"y": ("n", 2)})
    assert len(model.graph.initializer) == 2
    found = session_of(model).run(None, {"x": np.zeros((1, 2), "float32")})
    assert found[0].tolist() == [[2.0, 4.0]]


def test_a_graph_that_is_none_is_refused():
    graph = Graph()
    y = graph.add("NoSuchOperator", graph.input("x", "int32", [1]))
    with pytest.raises(onnx.checker.ValidationError):
        graph.model({"y": y}, {"y": [1]})
