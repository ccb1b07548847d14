"""Tests of qanet.layers.joined_pointer."""

import numpy as np
from keras import ops

from qanet.layers.joined_pointer import JoinedPointer
from qanet.layers.numerics import MASKED_LOGIT

QUESTION = np.array([[5, 6], [7, 0]], "int32")
CONTEXT = np.array([[8, 9, 4], [8, 0, 0]], "int32")


def test_logits_of_the_first_place_and_of_the_context(rng, randomise):
    x = rng.normal(size=(2, 8, 5)).astype("float32")
    layer = JoinedPointer()
    layer.build(x.shape, QUESTION.shape, CONTEXT.shape)
    weights = randomise(layer)

    found = [ops.convert_to_numpy(y) for y in layer(x, QUESTION, CONTEXT)]

    logits = x @ weights["span/kernel"] + weights["span/bias"]
    # [CLS] question question [SEP] context context context [SEP]
    for number, output in enumerate(found):
        assert output.dtype == np.float32
        assert output.shape == (2, 4)
        expected = logits[:, [0, 4, 5, 6], number]
        np.testing.assert_allclose(output[0], expected[0], atol=1e-5)
        np.testing.assert_allclose(output[1, :2], expected[1, :2], atol=1e-5)
        assert (output[1, 2:] == MASKED_LOGIT).all()


def test_round_trip(rng, check_round_trip):
    x = rng.normal(size=(2, 8, 5)).astype("float32")
    check_round_trip(JoinedPointer(), x, QUESTION, CONTEXT)
