"""Tests of qanet.layers.positions."""

import numpy as np
from keras import ops

from qanet.layers.positions import position_signal


def test_position_signal_against_numpy(reference):
    for length, width in ((1, 2), (50, 8), (700, 4)):
        signal = ops.convert_to_numpy(position_signal(length, width))
        expected = reference.position_signal(length, width)
        # float32 rounds the angle of position 700 by up to 3e-5.
        np.testing.assert_allclose(signal, expected, atol=1e-4)
