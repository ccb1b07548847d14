"""Tests of qanet.models.half_precision, and of predictions with it."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest

from qanet.models.half_precision import around_products, is_half_on_processor
from qanet.models.prediction import prediction

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="is for TensorFlow"
)


@pytest.fixture
def single():
    return model()


@pytest.fixture
def half(mixed_bfloat16):
    return model()


def model():
    """Two products with a function between them."""
    x = keras.Input((8,))
    hidden = keras.layers.Dense(16, activation="tanh")(x)
    return keras.Model(x, {"y": keras.layers.Dense(4, dtype="float32")(hidden)})


def test_products_in_half_precision_are_left_to_the_library():
    """XLA has the rest."""
    import tensorflow as tf

    @tf.function
    @around_products
    def step(x):
        return tf.tanh(x @ x) + 1.0

    nodes = step.get_concrete_function(tf.zeros((2, 2))).graph.as_graph_def().node
    compiled = {node.op: node.attr["_XlaCompile"].b for node in nodes}
    assert (compiled["Tanh"], compiled["AddV2"]) == (True, True)
    assert not compiled["MatMul"]


def test_it_is_known_by_its_precision(single):
    assert not is_half_on_processor(single)


@pytest.mark.parametrize("kind", ["GPU", "TPU"])
def test_it_is_known_by_its_device(half, kind, monkeypatch):
    import tensorflow as tf

    assert is_half_on_processor(half)
    devices = [SimpleNamespace(device_type=name) for name in ("CPU", kind)]
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda: devices)
    assert not is_half_on_processor(half)


def test_its_prediction_is_that_of_the_model(half, rng, monkeypatch):
    monkeypatch.setattr(type(half), "predict_on_batch", None)
    predict = prediction(half)
    for batch in (3, 5):
        x = rng.normal(size=(batch, 8)).astype("float32")
        outputs = predict(x)
        assert isinstance(outputs["y"], np.ndarray)
        expected = keras.ops.convert_to_numpy(half(x)["y"])
        np.testing.assert_allclose(outputs["y"], expected, atol=0.02)
