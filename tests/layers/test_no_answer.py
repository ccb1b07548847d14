"""Tests of qanet.layers.no_answer."""

import numpy as np
from keras import ops

from qanet.layers.no_answer import NoAnswerLogit


def test_one_logit_stands_before_those_of_the_tokens(rng, randomise):
    logits = rng.normal(size=(3, 5)).astype("float32")
    layer = NoAnswerLogit()
    layer.build(logits.shape)
    weights = randomise(layer)

    actual = ops.convert_to_numpy(layer(logits))

    assert actual.shape == layer.compute_output_shape(logits.shape) == (3, 6)
    np.testing.assert_array_equal(actual[:, 1:], logits)
    np.testing.assert_allclose(actual[:, 0], [weights["logit"].item()] * 3)
    assert layer.compute_output_shape((None, None)) == (None, None)


def test_it_is_even_with_a_token_of_logit_zero_at_the_start():
    np.testing.assert_array_equal(
        ops.convert_to_numpy(NoAnswerLogit()(np.ones((2, 1), "float32"))), [[0, 1]] * 2
    )


def test_round_trip(rng, check_round_trip):
    check_round_trip(NoAnswerLogit(), rng.normal(size=(2, 4)).astype("float32"))


def test_in_single_precision_logits_are_left_as_they_are(mixed_bfloat16):
    logits = np.array([[1.0001, -3e4]], "float32")
    actual = ops.convert_to_numpy(NoAnswerLogit(dtype="float32")(logits))
    assert actual.dtype == np.float32
    np.testing.assert_array_equal(actual[:, 1:], logits)
