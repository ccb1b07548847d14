"""Tests of qanet.layers.sentence_marks."""

import numpy as np
from keras import ops

from qanet.layers.sentence_marks import SentenceMarks

WORDS = np.array([[[1, 2], [3, 4]], [[5, 6], [0, 0]], [[0, 0], [0, 0]]], "int32")


def test_marks_stand_around_the_words_and_not_around_their_padding():
    marked, real = map(ops.convert_to_numpy, SentenceMarks([7, 0], [8, 9])(WORDS))
    assert marked.dtype == "int32"
    assert marked.tolist() == [
        [[7, 0], [1, 2], [3, 4], [8, 9]],
        [[7, 0], [5, 6], [8, 9], [0, 0]],
        [[7, 0], [8, 9], [0, 0], [0, 0]],
    ]
    assert real.tolist() == [
        [True, True, True, True],
        [True, True, True, False],
        [True, True, False, False],
    ]


def test_round_trip(check_round_trip):
    layer = SentenceMarks([7, 0], [8, 9])
    check_round_trip(layer, WORDS)
    spec = layer.compute_output_spec(ops.convert_to_tensor(WORDS))
    assert [tensor.shape for tensor in spec] == [(3, 4, 2), (3, 4)]
