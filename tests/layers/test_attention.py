"""Tests of qanet.layers.attention."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.attention import MultiHeadAttention, join_heads, split_heads

# Each query may look at its own choice of keys.
MASK = np.array([[1, 0, 0, 1], [1, 1, 1, 1], [0, 1, 0, 0]], bool)[None, None]


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_against_numpy(heads, rng, randomise, reference):
    x = rng.normal(size=(2, 3, 8)).astype("float32")
    memory = rng.normal(size=(2, 4, 8)).astype("float32")
    layer = MultiHeadAttention(8, heads)
    weights = randomise(layer)

    output = layer(x, *layer.keys_and_values(memory), MASK)

    for i in range(2):
        expected = reference.attention(x[i], memory[i], weights, heads, MASK[0, 0])
        np.testing.assert_allclose(ops.convert_to_numpy(output)[i], expected, atol=1e-5)


def test_heads_are_split_and_joined(rng):
    x = rng.normal(size=(2, 3, 8)).astype("float32")
    split = ops.convert_to_numpy(split_heads(x, 4))
    np.testing.assert_array_equal(split[1, 2, 0], x[1, 0, 4:6])
    np.testing.assert_array_equal(ops.convert_to_numpy(join_heads(split)), x)
