"""Tests of qanet.models.inputs."""

import keras
import numpy as np
from keras import ops

from qanet.models.inputs import mask_of, reading_inputs


def test_inputs_have_names_types_and_free_lengths():
    inputs = reading_inputs({"pieces": (), "characters": (7,)})

    shapes = {name: tensor.shape for name, tensor in inputs.items()}
    assert shapes == {
        "context_pieces": (None, None),
        "context_characters": (None, None, 7),
        "question_pieces": (None, None),
        "question_characters": (None, None, 7),
    }
    assert {tensor.dtype for tensor in inputs.values()} == {"int32"}


def test_a_mask_is_true_at_tokens_and_false_at_padding():
    column = keras.Input((None,), dtype="int32")
    model = keras.Model(column, mask_of(column))

    mask = ops.convert_to_numpy(model(np.array([[5, 1, 0], [0, 0, 0]], "int32")))

    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, [[True, True, False], [False] * 3])
