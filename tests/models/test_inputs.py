"""Tests of qanet.models.inputs."""

import keras
import numpy as np
import pytest
from keras import ops

from qanet.models.inputs import reading_inputs


def test_inputs_have_names_types_and_free_lengths():
    inputs = reading_inputs(characters_per_word=7)

    shapes = {name: tensor.shape for name, tensor in inputs.tensors.items()}
    assert shapes == {
        "context_words": (None, None),
        "context_characters": (None, None, 7),
        "question_words": (None, None),
        "question_characters": (None, None, 7),
    }
    assert {tensor.dtype for tensor in inputs.tensors.values()} == {"int32"}
    assert inputs.question_words is inputs.tensors["question_words"]


def test_masks_are_true_at_words_and_false_at_padding():
    inputs = reading_inputs(characters_per_word=2)
    masks = [inputs.context_mask, inputs.question_mask]
    model = keras.Model(inputs.tensors, masks)
    batch = {
        "context_words": np.array([[5, 1, 0], [2, 3, 4]], "int32"),
        "question_words": np.array([[1, 0], [0, 0]], "int32"),
        # Characters do not matter: a word without any known one is still a word.
        "context_characters": np.zeros((2, 3, 2), "int32"),
        "question_characters": np.ones((2, 2, 2), "int32"),
    }

    context, question = map(ops.convert_to_numpy, model(batch))

    np.testing.assert_array_equal(context, [[True, True, False], [True, True, True]])
    np.testing.assert_array_equal(question, [[True, False], [False, False]])


def test_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="answer_words"):
        _ = reading_inputs(characters_per_word=2).answer_words
