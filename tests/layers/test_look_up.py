"""Tests of qanet.layers.look_up."""

from functools import partial

import keras
import numpy as np
import pytest
from keras import ops

from qanet.layers import look_up
from qanet.layers.look_up import look_up_small
from qanet.layers.piece_embedding import PieceEmbedding
from qanet.layers.word_embedding import WordEmbedding

NUMBERS = np.array(
    [
        [[2, 3, 4, 0, 0, 0], [5, 0, 0, 0, 0, 0], [2, 1, 3, 2, 4, 5]],
        [[1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [3, 3, 0, 0, 0, 0]],
    ],
    "int32",
)


def test_product_in_the_place_of_a_look_up(rng, gradients, monkeypatch):
    """What accelerators compute: the same, and no sum over places one by one."""
    table = rng.normal(size=(6, 3)).astype("float32")
    upstream = rng.normal(size=(*NUMBERS.shape, 3)).astype("float32")

    def loss(table):
        return ops.sum(look_up_small(table, NUMBERS) * upstream)

    looked_up = ops.convert_to_numpy(look_up_small(table, NUMBERS))
    (gradient,) = gradients(loss, table)
    monkeypatch.setattr(look_up, "_take", look_up._multiply)
    product = ops.convert_to_numpy(look_up_small(table, NUMBERS))
    (product_gradient,) = gradients(loss, table)

    np.testing.assert_array_equal(looked_up, table[NUMBERS])
    np.testing.assert_allclose(product, looked_up, atol=1e-6)
    expected = np.zeros_like(table)
    np.add.at(expected, NUMBERS, upstream)
    np.testing.assert_allclose(gradient, expected, atol=1e-5)
    np.testing.assert_allclose(product_gradient, expected, atol=1e-5)


# A row of each table at a thousand places.
PLACES = np.ones((1, 1000), "int32")


@pytest.mark.parametrize("function", [look_up.look_up, look_up_small])
def test_gradient_of_a_frequent_row_in_half_precision(function, gradients):
    """A thousand ones are a thousand, where a sum in bfloat16 ends at 256."""

    def loss(table):
        found = function(ops.cast(table, "bfloat16"), PLACES)
        assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
        return ops.sum(ops.cast(found, "float32"))

    (gradient,) = gradients(loss, np.ones((2, 1), "float32"))

    np.testing.assert_array_equal(gradient, [[0], [1000]])


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        (partial(PieceEmbedding, pieces=2, positions=2), (PLACES, PLACES, PLACES)),
        (partial(WordEmbedding, rows=3, trainable_rows=True), (2 * PLACES,)),
    ],
)
def test_layers_sum_such_gradients_in_full_precision(
    kind, inputs, rng, gradients, call_with, randomise
):
    upstream = rng.uniform(size=(1, 1000, 4)).astype("float32")
    layers = [kind(width=4, dtype=dtype) for dtype in ("mixed_bfloat16", "float32")]
    for layer in layers:
        layer(*inputs)
    randomise(layers[0])
    values = [ops.convert_to_numpy(v) for v in layers[0].trainable_variables]

    def gradients_of(layer):
        def loss(*values):
            found = call_with(layer, values, *inputs)
            return ops.sum(ops.cast(found, "float32") * upstream)

        return gradients(loss, *values)

    for half, full in zip(*map(gradients_of, layers), strict=True):
        np.testing.assert_allclose(half, full, atol=0.05 * np.abs(full).max())


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="reads JAX' programs")
@pytest.mark.parametrize(
    ("platform", "scatters"), [("cpu", True), ("cuda", False), ("tpu", False)]
)
def test_accelerators_scatter_no_gradients(platform, scatters):
    import jax

    def loss(table):
        return ops.sum(ops.square(look_up_small(table, NUMBERS)))

    step = jax.jit(jax.grad(loss))
    exported = jax.export.export(step, platforms=[platform])(np.ones((6, 3), "f4"))

    assert (".scatter" in exported.mlir_module()) == scatters
