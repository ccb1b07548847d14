"""Tests of qanet.layers.bidirectional_lstm against a NumPy loop."""

import keras
import numpy as np
import pytest
from keras import ops

from qanet.layers.bidirectional_lstm import BidirectionalLSTM, reverse

pytestmark = pytest.mark.usefixtures("fixed_seed")

UNITS = 3
LENGTHS = (5, 2, 0)


@pytest.fixture
def texts(rng):
    """Vectors of texts, noise at their padding, and the mask."""
    x = rng.normal(size=(3, 5, 4)).astype("float32")
    return x, np.arange(5) < np.array(LENGTHS)[:, None]


@pytest.fixture
def numpy_lstm(reference):
    """The layer in float64."""

    def read(x, weights):
        result = np.zeros((*x.shape[:2], 2 * UNITS))
        for row, length in enumerate(LENGTHS):
            text = x[row, :length]
            result[row, :length] = reference.bidirectional_lstm(text, weights)
        return result

    return read


def test_against_numpy(texts, randomise, numpy_lstm):
    x, mask = texts
    layer = BidirectionalLSTM(UNITS)
    layer(x, mask)
    weights = randomise(layer)
    output = ops.convert_to_numpy(layer(x, mask))
    assert output.dtype == "float32"
    np.testing.assert_allclose(output, numpy_lstm(x, weights), atol=1e-6)


def test_gradients_against_numpy(texts, randomise, numpy_lstm, check_gradients, rng):
    x, mask = texts
    layer = BidirectionalLSTM(UNITS)
    layer(x, mask)
    weights = randomise(layer)
    upstream = rng.normal(size=(3, 5, 2 * UNITS)).astype("float32")
    check_gradients(layer, numpy_lstm, x, weights, upstream, mask=mask)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="its graphs")
def test_a_compiled_graph_of_unknown_length(texts, randomise, gradients, call_with):
    """Forward and backward, as it is trained."""
    x, mask = texts
    layer = BidirectionalLSTM(UNITS)
    layer(x, mask)
    randomise(layer)
    values = [ops.convert_to_numpy(v) for v in layer.trainable_variables]

    def loss(x, *values):
        return ops.sum(call_with(layer, values, x, ops.convert_to_tensor(mask)) ** 2)

    expected = gradients(loss, x, *values)
    import tensorflow as tf

    def compiled(x, mask, *values):
        with tf.GradientTape() as tape:
            tape.watch([x, *values])
            total = tf.reduce_sum(call_with(layer, values, x, mask) ** 2)
        return tape.gradient(total, [x, *values])

    specs = [tf.TensorSpec([None, None, 4]), tf.TensorSpec([None, None], tf.bool)]
    specs += [tf.TensorSpec(value.shape) for value in values]
    graph = tf.function(compiled, input_signature=specs, jit_compile=True)
    found = graph(x, mask, *values)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-4, atol=1e-5)


def test_padding_leaks_nowhere(texts):
    x, mask = texts
    layer = BidirectionalLSTM(UNITS)
    output = ops.convert_to_numpy(layer(x, mask))
    assert not output[~mask].any()
    other = np.where(mask[..., None], x, 100.0)
    np.testing.assert_array_equal(ops.convert_to_numpy(layer(other, mask)), output)
    alone = layer(x[1:2, :2], mask[1:2, :2])
    np.testing.assert_allclose(ops.convert_to_numpy(alone)[0], output[1, :2], atol=1e-6)


def test_reverse_leaves_padding_where_it_is(texts):
    x, mask = texts
    turned = ops.convert_to_numpy(reverse(x, mask))
    np.testing.assert_array_equal(turned[0], x[0, ::-1])
    np.testing.assert_array_equal(turned[1, :2], x[1, 1::-1])
    np.testing.assert_array_equal(turned[1, 2:], x[1, 2:])
    np.testing.assert_array_equal(turned[2], x[2])


def test_first_weights_are_drawn_for_each_gate():
    layer = BidirectionalLSTM(16)
    layer.build((None, None, 24))
    kernel = ops.convert_to_numpy(layer.kernel)
    bound = (6 / (24 + 16)) ** 0.5
    assert bound * 0.9 < np.abs(kernel).max() <= bound
    gates = np.split(kernel, 8, axis=1)
    assert not np.array_equal(gates[0], gates[1])
    for matrix in ops.convert_to_numpy(layer.recurrent_kernel):
        for gate in np.split(matrix, 4, axis=1):
            np.testing.assert_allclose(gate @ gate.T, np.eye(16), atol=1e-5)
    bias = ops.convert_to_numpy(layer.bias).reshape(2, 4, 16)
    assert (bias == np.array([0, 1, 0, 0])[:, None]).all()


def test_mixed_bfloat16_keeps_its_states_in_single_precision(
    mixed_bfloat16, texts, randomise, numpy_lstm
):
    x, mask = texts
    layer = BidirectionalLSTM(UNITS)
    layer(x, mask)
    weights = randomise(layer)
    output = layer(x, mask)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    output = ops.convert_to_numpy(ops.cast(output, "float32"))
    np.testing.assert_allclose(output, numpy_lstm(x, weights), atol=0.02)


def test_it_is_made_again_from_its_configuration(texts, check_round_trip):
    check_round_trip(BidirectionalLSTM(UNITS), *texts)
