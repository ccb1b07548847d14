"""Tests of qanet.layers.join_texts."""

import numpy as np
from keras import ops

from qanet.layers.join_texts import JoinTexts

QUESTION = np.array([[5, 6, 0], [7, 8, 9], [0, 0, 0]], "int32")
CONTEXT = np.array([[11, 0], [12, 13], [0, 0]], "int32")


def test_pieces_positions_segments_and_where_they_are_real():
    joined = JoinTexts(2, 3)(QUESTION, CONTEXT)
    pieces, positions, segments, real = map(ops.convert_to_numpy, joined)
    assert pieces.tolist() == [
        [2, 5, 6, 0, 3, 11, 0, 3],
        [2, 7, 8, 9, 3, 12, 13, 3],
        [2, 0, 0, 0, 3, 0, 0, 3],
    ]
    np.testing.assert_array_equal(real, pieces != 0)
    # As without padding.
    for row, ends in ((0, 6), (1, 8), (2, 3)):
        assert positions[row][real[row]].tolist() == list(range(ends))
    assert positions.min() >= 0
    assert segments.tolist() == [[0] * 5 + [1] * 3] * 3


def test_shapes_and_round_trip():
    layer = JoinTexts(2, 3)
    spec = layer.compute_output_spec(
        *(ops.convert_to_tensor(text) for text in (QUESTION, CONTEXT))
    )
    assert [tensor.shape for tensor in spec] == [(3, 8)] * 4
    again = JoinTexts.from_config(layer.get_config())
    assert (again.cls_id, again.sep_id) == (2, 3)
