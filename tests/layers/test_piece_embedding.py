"""Tests of qanet.layers.piece_embedding."""

import re

import keras
import numpy as np
import pytest
from keras import ops

from qanet.layers.piece_embedding import PieceEmbedding

PIECES = np.array([[2, 5, 3]], "int32")
POSITIONS = np.array([[0, 1, 2]], "int32")
SEGMENTS = np.array([[0, 0, 1]], "int32")


def test_against_numpy(randomise, reference):
    layer = PieceEmbedding(pieces=6, positions=4, width=5)
    layer(PIECES, POSITIONS, SEGMENTS)
    weights = randomise(layer)

    output = ops.convert_to_numpy(layer(PIECES, POSITIONS, SEGMENTS))

    x = weights["piece"][[2, 5, 3]] + weights["position"][:3]
    x = x + weights["segment"][[0, 0, 1]]
    expected = reference.layer_norm(x, reference.below(weights, "norm"))
    assert output.shape == layer.compute_output_shape(PIECES.shape)
    np.testing.assert_allclose(output[0], expected, atol=1e-5)


def test_dropout_acts_in_training_alone(fixed_seed):
    layer = PieceEmbedding(pieces=6, positions=4, width=5, dropout=0.5)
    calm, again = (layer(PIECES, POSITIONS, SEGMENTS) for _ in range(2))
    noisy = layer(PIECES, POSITIONS, SEGMENTS, training=True)
    np.testing.assert_array_equal(calm, again)
    assert np.any(ops.convert_to_numpy(noisy) == 0)


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="reads JAX' programs")
def test_accelerators_scatter_gradients_of_pieces_alone():
    """Positions and segments have few rows, where places would wait for each other."""
    import jax

    layer = PieceEmbedding(pieces=6, positions=4, width=5)
    layer(PIECES, POSITIONS, SEGMENTS)
    values = [variable.value for variable in layer.trainable_variables]

    def loss(values):
        output, _ = layer.stateless_call(values, [], PIECES, POSITIONS, SEGMENTS)
        return ops.sum(ops.square(output))

    step = jax.jit(jax.grad(loss))
    program = jax.export.export(step, platforms=["cuda"])(values).mlir_module()

    assert len(re.findall(r'"stablehlo\.scatter"', program)) == 1


def test_round_trip(check_round_trip):
    layer = PieceEmbedding(pieces=6, positions=4, width=5, dropout=0.1)
    check_round_trip(layer, PIECES, POSITIONS, SEGMENTS)
