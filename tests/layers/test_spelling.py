"""Tests of qanet.layers.spelling; what it is for is tested in test_text_match."""

import numpy as np
from keras import ops

from qanet.layers.spelling import Spelling

# Padding, unknown, then a, A, b, B.
LOWERCASE = (0, 1, 2, 2, 4, 4)
WORDS = np.array([[2, 1, 0, 1, 2]], "int32")
CHARACTERS = np.array([[[2, 4], [3, 4], [0, 0], [1, 4], [1, 4]]], "int32")


def test_in_lower_case_words_are_spelled_alike():
    found = ops.convert_to_numpy(Spelling(LOWERCASE)(WORDS, CHARACTERS))[0]
    assert found[0, 0] != found[1, 0]
    assert found[0, 1:].tolist() == found[1, 1:].tolist()


def test_padding_and_what_is_not_known_are_spelled_like_nothing():
    found = ops.convert_to_numpy(Spelling(LOWERCASE)(WORDS, CHARACTERS))[0]
    assert found.any(axis=-1).tolist() == [True, True, False, False, True]


def test_round_trip(check_round_trip):
    check_round_trip(Spelling(LOWERCASE), WORDS, CHARACTERS)
