"""The signal that tells positions apart (Vaswani et al., 2017, section 3.5)."""

import numpy as np
from keras import ops


def position_signal(length, width):
    """Sines and cosines of geometrically growing wavelengths, 2π to 20,000π.

    Vaswani et al., 2017, section 3.5, as their code tensor2tensor has it: the sines
    fill the first half of the vector and the cosines the second, and the exponents go
    from 0 to 1, so that the last wavelength is 20,000π.

    Args:
        length: number of positions.
        width: size of the vectors, even.

    Returns:
        float32 tensor `(length, width)`.
    """
    positions = ops.cast(ops.arange(length, dtype="int32"), "float32")
    angles = ops.expand_dims(positions, 1) * frequencies(width).astype("float32")
    return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=1)


def frequencies(width):
    """By how much the angles grow from a position to the next, `(width / 2,)`."""
    half = width // 2
    return 10000.0 ** (-np.arange(half) / max(half - 1, 1))
