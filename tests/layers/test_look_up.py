"""Tests of qanet.layers.look_up."""

import keras
import numpy as np
import pytest
from keras import ops

from qanet.layers import look_up
from qanet.layers.look_up import look_up_small

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
