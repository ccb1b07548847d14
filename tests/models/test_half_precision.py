"""Tests of qanet.models.half_precision, and of predictions with it."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest

from qanet.models import half_precision, prediction
from qanet.models.half_precision import around_products, is_half_on_processor

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="is for TensorFlow"
)


@pytest.fixture(autouse=True)
def processor(monkeypatch, tmp_path):
    """Sets the flags of the processor that computes, and what is beside it."""
    import tensorflow as tf

    def set_processor(flags="fpu avx512_bf16", beside=()):
        path = tmp_path / "cpuinfo"
        path.write_text(f"processor\t: 0\nflags\t\t: {flags}\n\nprocessor\t: 1\n")
        kinds = [SimpleNamespace(device_type=kind) for kind in ("CPU", *beside)]
        monkeypatch.setattr(half_precision, "PROCESSORS", path)
        monkeypatch.setattr(tf.config, "list_logical_devices", lambda: kinds)

    set_processor()
    return set_processor


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


def test_it_is_known_by_its_precision():
    assert not is_half_on_processor(model())


@pytest.mark.parametrize("kind", ["GPU", "TPU"])
def test_it_is_known_by_its_device(half, kind, processor):
    processor(beside=[kind])
    assert not is_half_on_processor(half)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [("amx_bf16 avx2", True), ("avx512_bf16", True), ("avx2 avx512f amx_int8", False)],
)
def test_it_is_known_by_its_instructions(half, flags, expected, processor):
    processor(flags)
    assert is_half_on_processor(half) is expected


def test_a_system_that_does_not_tell_has_none(half, monkeypatch, tmp_path):
    monkeypatch.setattr(half_precision, "PROCESSORS", tmp_path / "absent")
    assert not is_half_on_processor(half)


def test_its_prediction_is_that_of_the_model(half, rng, monkeypatch):
    used = []

    def noted(function):
        used.append(function)
        return around_products(function)

    monkeypatch.setattr(prediction, "around_products", noted)
    predict = prediction.prediction(half)
    assert len(used) == 1
    for batch, scale in ((3, 1.0), (5, 1.0), (5, 0.5)):
        # The weights of the time, as an evaluation with averages has them.
        half.set_weights([scale * weight for weight in half.get_weights()])
        x = rng.normal(size=(batch, 8)).astype("float32")
        outputs = predict(x)
        assert isinstance(outputs["y"], np.ndarray)
        expected = keras.ops.convert_to_numpy(half(x)["y"])
        np.testing.assert_allclose(outputs["y"], expected, atol=0.02)
