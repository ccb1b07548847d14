"""What all layers have in common whose output are logits."""

import keras


def with_no_answer(shape):
    """The shape of logits that begin with one for "no answer".

    Args:
        shape: that of the tokens' logits, `(batch, length)`; either may be `None`.
    """
    batch, length = shape
    return batch, None if length is None else 1 + length


class LogitsLayer(keras.layers.Layer):
    """A layer that computes in single precision and passes no mask on.

    bfloat16 tells logits near 10 apart by sixteenths only.
    """

    def __init__(self, **kwargs):
        super().__init__(**{"dtype": "float32"} | kwargs)
        self.supports_masking = True

    def compute_mask(self, inputs, previous_mask):
        """No mask goes on with the logits, in which padding is excluded already."""
        return None
