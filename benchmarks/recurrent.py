"""Recurrent stacks in the place of the encoder stacks, to compare the speed of both."""

import keras
from keras import ops

from qanet.layers.dropout import Dropout
from qanet.layers.numerics import zero_padding
from qanet.layers.recurrent import reverse


class RecurrentStack(keras.layers.Layer):
    """Bidirectional LSTMs, one on the other.

    A direction has half the width. The LSTMs get no mask, so that cuDNN may compute
    them: the backward one reads the real vectors in reverse order, and neither sees
    the padding before it has read them.

    Args:
        depth: number of bidirectional layers.
        dropout: dropout rate of each layer's input.
        cudnn: compute by cuDNN's kernel, in float32, instead of by a loop.

    Input: float tensor `(batch, length, width)` and boolean mask `(batch, length)`,
    true at first and then false.
    Output: float tensor `(batch, length, width)`, zero at padding.
    """

    def __init__(self, depth, dropout=0.0, cudnn=False, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.depth = depth
        self.dropout = dropout
        self.cudnn = cudnn

    def build(self, input_shape):
        def lstm(name):
            layer = keras.layers.LSTM(
                input_shape[-1] // 2,
                return_sequences=True,
                use_cudnn=self.cudnn,
                dtype="float32" if self.cudnn else self.dtype_policy,
                name=name,
            )
            layer.build(input_shape)
            return layer

        numbers = range(self.depth)
        self.dropouts = [Dropout(self.dropout, name=f"dropout_{i}") for i in numbers]
        self.forward = [lstm(f"forward_{i}") for i in numbers]
        self.backward = [lstm(f"backward_{i}") for i in numbers]

    def call(self, x, mask, training=False):
        dtype = x.dtype
        layers = zip(self.dropouts, self.forward, self.backward, strict=True)
        for dropout, forward, backward in layers:
            # This also rids the tensor of a mask that Keras would hand to the LSTM.
            x = zero_padding(dropout(x, training=training), mask)
            back = reverse(backward(reverse(x, mask)), mask)
            x = ops.cast(ops.concatenate([forward(x), back], axis=-1), dtype)
        return zero_padding(x, mask)

    def compute_output_shape(self, input_shape):
        return input_shape


def recurrent(
    depth: int, cudnn: bool, dropout: float, name: str, **_
) -> RecurrentStack:
    """A recurrent stack from the arguments of `EncoderStack`."""
    return RecurrentStack(depth, dropout, cudnn, name=name)
