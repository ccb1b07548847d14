"""Tests of qanet.layers.word_embedding."""

import keras
import numpy as np
import pytest
from keras import ops

from qanet.layers.word_embedding import WordEmbedding

ROWS = np.array([[2, 4, 1, 2, 0], [1, 3, 0, 0, 0]], "int32")


@pytest.mark.parametrize("trainable_rows", [False, True])
def test_words_are_rows_of_the_table(trainable_rows, randomise):
    layer = WordEmbedding(5, 3, trainable_rows=trainable_rows)
    layer.build(ROWS.shape)
    weights = randomise(layer)

    output = ops.convert_to_numpy(layer(ROWS))

    for position, row in np.ndenumerate(ROWS):
        expected = {0: np.zeros(3), 1: weights["unknown"]}.get(row)
        if expected is None:
            expected = weights["table"][row]
        np.testing.assert_allclose(output[position], expected, atol=1e-7)
    assert layer.compute_output_shape(ROWS.shape) == output.shape


def test_pretrained_rows_are_frozen_and_the_unknown_word_is_trained(rng):
    layer = WordEmbedding(5, 3)
    layer.build(ROWS.shape)
    table = rng.normal(size=(5, 3)).astype("float32")
    layer.load_table(table)

    output = ops.convert_to_numpy(layer(ROWS))

    assert [tuple(weight.shape) for weight in layer.trainable_variables] == [(3,)]
    np.testing.assert_array_equal(output[ROWS >= 2], table[ROWS[ROWS >= 2]])


def test_null_word_row_learns_nothing(randomise, gradients, call_with):
    layer = WordEmbedding(5, 3, trainable_rows=True)
    layer.build(ROWS.shape)
    randomise(layer)
    names = [weight.name for weight in layer.trainable_variables]

    def loss(*values):
        return ops.sum(call_with(layer, values, ROWS))

    learnt = dict(zip(names, gradients(loss, *layer.get_weights()), strict=True))

    # The row of unknown words is the vector `unknown`; those of the table are unused.
    assert np.all(learnt["table"][:2] == 0.0)
    assert np.all(learnt["table"][2:] != 0.0)
    np.testing.assert_array_equal(learnt["unknown"], np.full(3, 2.0))


def test_round_trip(check_round_trip):
    check_round_trip(WordEmbedding(5, 3), ROWS)
    check_round_trip(WordEmbedding(5, 3, True), ROWS)


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="reads JAX' programs")
@pytest.mark.parametrize("trainable_rows", [False, True])
def test_in_half_precision_no_whole_table_is_cast(mixed_bfloat16, trainable_rows):
    import jax

    layer = WordEmbedding(99, 3, trainable_rows)
    layer.build(ROWS.shape)

    def embedded(rows):
        with keras.StatelessScope():
            return layer(rows)

    program = str(jax.make_jaxpr(embedded)(ROWS))
    assert "bf16[" in program
    assert "bf16[99,3]" not in program


def test_a_frequent_row_has_its_whole_gradient_in_half_precision(
    mixed_bfloat16, gradients, call_with
):
    """257 ones, which bfloat16 has not: it has 256 and 258."""
    places = np.full((1, 257), 2, "int32")
    layer = WordEmbedding(3, 1, trainable_rows=True)
    layer(places)
    values = [ops.convert_to_numpy(v) for v in layer.trainable_variables]

    def loss(*values):
        return ops.sum(ops.cast(call_with(layer, values, places), "float32"))

    table, _ = gradients(loss, *values)
    np.testing.assert_array_equal(table, [[0], [0], [257]])


def test_mixed_bfloat16(mixed_bfloat16):
    assert ops.dtype(WordEmbedding(5, 3)(ROWS)) == "bfloat16"
