"""Tests of qanet.layers.character_cnn."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.character_cnn import CharacterCNN

pytestmark = pytest.mark.usefixtures("fixed_seed")

CHARACTERS, WIDTH, PLACES = 9, 3, 6
FILTERS = [[1, 2], [3, 4], [6, 2]]


@pytest.fixture
def words(rng):
    words = rng.integers(1, CHARACTERS + 1, (2, 5, PLACES)).astype("int32")
    words[1, 3:] = 0
    return words


@pytest.fixture
def made(words, randomise):
    def make(activation="relu"):
        layer = CharacterCNN(CHARACTERS, WIDTH, FILTERS, activation)
        layer(words)
        return layer, randomise(layer)

    return make


def numpy_cnn(words, weights, activation):
    """The real words alone, in float64, a filter at one place after the other."""
    result = np.zeros((*words.shape[:2], 8))
    for row, place in np.argwhere(words.any(axis=2)):
        vectors = [weights["table"][c - 1] for c in words[row, place]]
        features = []
        for i, (size, count) in enumerate(FILTERS):
            sums = np.full((PLACES - size + 1, count), weights[f"bias_{i}"])
            for first in range(len(sums)):
                for tap in range(size):
                    sums[first] += vectors[first + tap] @ weights[f"kernel_{i}"][tap]
            features.append(sums.max(axis=0))
        features = np.concatenate(features)
        result[row, place] = (
            np.tanh(features) if activation == "tanh" else np.maximum(features, 0)
        )
    return result


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_against_numpy(words, made, activation):
    layer, weights = made(activation)
    output = ops.convert_to_numpy(layer(words))
    real = words.any(axis=2)
    expected = numpy_cnn(words, weights, activation)
    np.testing.assert_allclose(output[real], expected[real], atol=1e-5)
    assert layer.compute_output_shape(words.shape) == output.shape


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_gradients_against_numpy(words, made, activation, gradients, call_with, rng):
    layer, weights = made(activation)
    upstream = rng.normal(size=(2, 5, 8)) * words.any(axis=2, keepdims=True)
    upstream = upstream.astype("float32")

    def loss(*values):
        return ops.sum(call_with(layer, values, words) * upstream)

    paths = [v.path.removeprefix(f"{layer.name}/") for v in layer.trainable_variables]
    found = gradients(loss, *(weights[path].astype("float32") for path in paths))
    for path, gradient in zip(paths, found, strict=True):
        direction = rng.normal(size=gradient.shape)
        moved = [
            numpy_cnn(
                words, weights | {path: weights[path] + s * direction}, activation
            )
            for s in (1e-6, -1e-6)
        ]
        expected = np.sum(upstream * (moved[0] - moved[1])) / 2e-6
        np.testing.assert_allclose(
            np.sum(gradient * direction), expected, rtol=1e-3, atol=1e-4, err_msg=path
        )


def test_round_trip(words, check_round_trip):
    check_round_trip(CharacterCNN(CHARACTERS, WIDTH, FILTERS, "tanh"), words)


def test_mixed_bfloat16(mixed_bfloat16, words, made):
    layer, weights = made()
    output = layer(words)
    assert ops.dtype(output) == "bfloat16"
    real = words.any(axis=2)
    found = ops.convert_to_numpy(ops.cast(output, "float32"))[real]
    np.testing.assert_allclose(found, numpy_cnn(words, weights, "relu")[real], atol=0.1)
