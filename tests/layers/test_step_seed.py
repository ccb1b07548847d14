"""Tests of qanet.layers.step_seed."""

import keras
import numpy as np
from keras import ops

from qanet.layers.step_seed import StepSeed


def test_step_seeds_follow_the_global_seed_and_stand_still_at_test():
    def sequence():
        keras.utils.set_random_seed(3)
        layer = StepSeed()
        seeds = [layer(np.zeros(1), training=training) for training in (True,) * 3]
        return layer, np.array([ops.convert_to_numpy(seed) for seed in seeds])

    (layer, first), (_, again) = sequence(), sequence()

    np.testing.assert_array_equal(first, again)
    assert len(np.unique(first, axis=0)) == 3
    state = ops.convert_to_numpy(layer.seed_generator.state)
    assert not np.any(ops.convert_to_numpy(layer(np.zeros(1))))
    np.testing.assert_array_equal(
        ops.convert_to_numpy(layer.seed_generator.state), state
    )
