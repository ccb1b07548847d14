"""Fixtures of the tests of layers and models, the same on every backend."""

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture(scope="session")
def reference():
    """The formulas in plain NumPy, from `layers/reference.py`."""
    path = Path(__file__).parent / "layers" / "reference.py"
    return SimpleNamespace(**runpy.run_path(str(path)))


@pytest.fixture
def randomise(rng):
    """Sets all weights of a built layer at random, also biases and norm scales.

    Returns them as float64 arrays by their path within the layer.
    """

    def set_weights(layer, bound=0.8):
        values = {}
        for weight in layer.weights:
            value = rng.uniform(-bound, bound, weight.shape).astype("float32")
            weight.assign(value)
            path = weight.path.removeprefix(f"{layer.name}/")
            values[path] = value.astype("float64")
        return values

    return set_weights


@pytest.fixture
def mixed_bfloat16():
    """Layers made in the test compute in bfloat16 and keep float32 weights."""
    import keras

    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    yield
    keras.config.set_dtype_policy(before)


@pytest.fixture
def check_round_trip(randomise):
    """Asserts that a layer made again from its stored configuration is the same."""
    import keras
    from keras import ops

    def check(layer, *inputs, **arguments):
        expected = layer(*inputs, **arguments)
        if layer.weights:
            randomise(layer)
            expected = layer(*inputs, **arguments)
        stored = json.dumps(keras.saving.serialize_keras_object(layer))
        again = keras.saving.deserialize_keras_object(json.loads(stored))
        assert type(again) is type(layer)
        assert again.get_config() == layer.get_config()
        again(*inputs, **arguments)
        again.set_weights(layer.get_weights())
        actual = again(*inputs, **arguments)
        np.testing.assert_array_equal(
            ops.convert_to_numpy(actual), ops.convert_to_numpy(expected)
        )

    return check


@pytest.fixture(scope="session")
def gradients():
    """Gradients of `function(*arrays)`, a scalar, to each of the arrays."""
    import keras

    def on_jax(function, *arrays):
        import jax

        every = tuple(range(len(arrays)))
        return [np.asarray(g) for g in jax.jit(jax.grad(function, every))(*arrays)]

    def on_tensorflow(function, *arrays):
        import tensorflow as tf

        tensors = [tf.constant(array) for array in arrays]
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            value = function(*tensors)
        result = tape.gradient(value, tensors, unconnected_gradients="zero")
        return [tf.convert_to_tensor(g).numpy() for g in result]

    return on_jax if keras.backend.backend() == "jax" else on_tensorflow


@pytest.fixture
def check_gradients(gradients, rng):
    """Asserts the gradients of a layer against differences of a NumPy function.

    `function(x, weights)` is the layer at `x` in float64, with `weights` by path. The
    gradients of sum(upstream * output) are compared along one random direction for
    `x` and for each weight.
    """
    from keras import ops

    def check(layer, function, x, weights, upstream, **arguments):
        state = [variable.value for variable in layer.non_trainable_variables]

        def loss(x, *values):
            output, _ = layer.stateless_call(values, state, x, **arguments)
            return ops.sum(output * upstream)

        names = [
            variable.path.removeprefix(f"{layer.name}/")
            for variable in layer.trainable_variables
        ]
        values = [weights[name].astype("float32") for name in names]
        actual = gradients(loss, x, *values)

        def difference(name, direction):
            def shifted(step):
                if name == "x":
                    return function(x + step * direction, weights)
                moved = weights | {name: weights[name] + step * direction}
                return function(x.astype("float64"), moved)

            return np.sum(upstream * (shifted(1e-6) - shifted(-1e-6))) / 2e-6

        for name, gradient in zip(["x", *names], actual, strict=True):
            direction = rng.normal(size=gradient.shape)
            np.testing.assert_allclose(
                np.sum(gradient * direction),
                difference(name, direction),
                rtol=1e-3,
                atol=1e-4,
                err_msg=name,
            )

    return check
