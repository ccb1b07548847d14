"""Tests of qanet.layers.projected_lstm against a NumPy loop."""

import keras
import numpy as np
import pytest
from keras import ops

from qanet.layers.projected_lstm import ProjectedLSTM

pytestmark = pytest.mark.usefixtures("fixed_seed")

WIDTH, UNITS, PROJECTION = 4, 5, 3
LENGTHS = (6, 2, 0)
# Small, so that some numbers are clipped and others are not.
CLIPS = {"cell_clip": 0.5, "projection_clip": 0.3}


@pytest.fixture
def texts(rng):
    """What each direction reads, noise at padding, and the mask."""
    x = rng.normal(size=(3, 6, 2 * WIDTH)).astype("float32")
    return x, np.arange(6) < np.array(LENGTHS)[:, None]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def read(x, kernel, bias, projection, clips):
    """Cells and states of one direction, on one text without padding."""
    c, h = np.zeros(UNITS), np.zeros(PROJECTION)
    cells, states = [], []
    for vector in x:
        z = np.concatenate([vector, h]) @ kernel + bias
        i, j, f, o = np.split(z, 4)
        c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j)
        c = np.clip(c, -clips["cell_clip"], clips["cell_clip"])
        h = (sigmoid(o) * np.tanh(c)) @ projection
        h = np.clip(h, -clips["projection_clip"], clips["projection_clip"])
        cells.append(c)
        states.append(h)
    return (
        np.array(cells).reshape(-1, UNITS),
        np.array(states).reshape(-1, PROJECTION),
    )


def numpy_lstm(x, weights, clips=CLIPS):
    """The layer in float64."""
    result = np.zeros((*x.shape[:2], 2 * PROJECTION))
    for row, length in enumerate(LENGTHS):
        parts = np.split(x[row, :length], 2, axis=1)
        for way, turn in enumerate((slice(None), slice(None, None, -1))):
            of_way = [weights[n][way] for n in ("kernel", "bias", "projection_kernel")]
            _, states = read(parts[way][turn], *of_way, clips)
            columns = slice(way * PROJECTION, (way + 1) * PROJECTION)
            result[row, :length, columns] = states[turn]
    return result


@pytest.fixture
def made(texts, randomise):
    """A layer with random weights, and these."""

    def make(**clips):
        layer = ProjectedLSTM(UNITS, PROJECTION, **clips)
        layer(*texts)
        return layer, randomise(layer, bound=1.5)

    return make


@pytest.mark.parametrize("clips", [CLIPS, {"cell_clip": 3.0, "projection_clip": 3.0}])
def test_against_numpy(texts, made, clips):
    layer, weights = made(**clips)
    output = ops.convert_to_numpy(layer(*texts))
    assert output.dtype == "float32"
    expected = numpy_lstm(texts[0], weights, clips)
    np.testing.assert_allclose(output, expected, atol=1e-6)


def test_both_clips_act_and_not_everywhere(texts, made):
    _, weights = made(**CLIPS)
    forward = [weights[n][0] for n in ("kernel", "bias", "projection_kernel")]
    cells, states = read(texts[0][0, :, :WIDTH], *forward, CLIPS)
    for values, clip in ((cells, "cell_clip"), (states, "projection_clip")):
        assert 0.05 < np.mean(np.abs(values) == CLIPS[clip]) < 0.95


def test_gradients_against_numpy(texts, made, check_gradients, rng):
    x, mask = texts
    layer, weights = made(**CLIPS)
    upstream = rng.normal(size=(3, 6, 2 * PROJECTION)).astype("float32")
    check_gradients(layer, numpy_lstm, x, weights, upstream, mask=mask)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="its graphs")
def test_a_compiled_graph_of_unknown_length(texts, made, gradients, call_with):
    """Forward and backward, as it is trained."""
    x, mask = texts
    layer, _ = made(**CLIPS)
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

    shape = [None, None, 2 * WIDTH]
    specs = [tf.TensorSpec(shape), tf.TensorSpec([None, None], tf.bool)]
    specs += [tf.TensorSpec(value.shape) for value in values]
    graph = tf.function(compiled, input_signature=specs, jit_compile=True)
    found = graph(x, mask, *values)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-4, atol=1e-5)


def test_padding_leaks_nowhere(texts, made):
    x, mask = texts
    layer, _ = made(**CLIPS)
    output = ops.convert_to_numpy(layer(x, mask))
    assert not output[~mask].any()
    other = np.where(mask[..., None], x, 100.0)
    np.testing.assert_array_equal(ops.convert_to_numpy(layer(other, mask)), output)
    alone = layer(x[1:2, :2], mask[1:2, :2])
    np.testing.assert_allclose(ops.convert_to_numpy(alone)[0], output[1, :2], atol=1e-6)


def test_each_direction_reads_its_own_features(texts, made):
    x, mask = texts
    layer, _ = made(**CLIPS)
    output = ops.convert_to_numpy(layer(x, mask))
    other = x.copy()
    other[..., WIDTH:] += 1.0
    changed = ops.convert_to_numpy(layer(other, mask)) != output
    assert not changed[..., :PROJECTION].any()
    assert changed[0, :, PROJECTION:].any()


def test_first_weights_are_drawn_for_each_gate(texts):
    layer = ProjectedLSTM(UNITS, PROJECTION)
    layer(*texts)
    kernel = ops.convert_to_numpy(layer.kernel)
    bound = (6 / (WIDTH + PROJECTION + UNITS)) ** 0.5
    assert bound * 0.9 < np.abs(kernel).max() <= bound
    assert len({gate.tobytes() for gate in np.split(kernel, 4, axis=2)}) == 4
    assert not np.array_equal(kernel[0], kernel[1])
    assert not ops.convert_to_numpy(layer.bias).any()


def test_mixed_bfloat16_keeps_its_states_in_single_precision(
    mixed_bfloat16, texts, made
):
    layer, weights = made(**CLIPS)
    output = layer(*texts)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    output = ops.convert_to_numpy(ops.cast(output, "float32"))
    np.testing.assert_allclose(output, numpy_lstm(texts[0], weights), atol=0.02)


def test_it_is_made_again_from_its_configuration(texts, check_round_trip):
    layer = ProjectedLSTM(UNITS, PROJECTION, **CLIPS)
    check_round_trip(layer, *texts)
    assert layer.compute_output_shape(texts[0].shape) == (3, 6, 2 * PROJECTION)
