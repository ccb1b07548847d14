"""The encoder block and its stack (QANet, section 2.2, figure 1 right)."""

import keras
from keras import ops

from qanet.layers.convolution import DepthwiseSeparableConv1D
from qanet.layers.feed_forward import FeedForward
from qanet.layers.plain_convolution import PlainConv1D
from qanet.layers.positions import position_signal
from qanet.layers.residual import EPSILON, Residual
from qanet.layers.self_attention import MultiHeadSelfAttention


def survival_at(level, depth, last):
    """The probability that a sub-layer takes part in training (QANet, section 4.1).

    Args:
        level: the sub-layer's number in its stack, from 1.
        depth: sub-layers of the stack.
        last: the probability of the last one.
    """
    return 1.0 - level / depth * (1.0 - last)


@keras.saving.register_keras_serializable(package="qanet")
class EncoderStack(keras.layers.Layer):
    """Blocks of [convolutions, self-attention, feed-forward], each a residual.

    Sub-layer l of the stack's L survives training with probability
    1 - l/L * (1 - survival), so that the deepest one survives with `survival`.

    Args:
        blocks: number of blocks.
        convolutions: convolutions in a block.
        kernel_size: kernel of the convolutions.
        heads: heads of the self-attention; 0 leaves it out.
        feed_forward: inner size of the feed-forward layer.
        dropout: dropout rate of every sub-layer's output.
        survival: survival probability of the last sub-layer.
        residual_scale: fixed factor of every sub-layer's output.
        position_scale: amplitude of the position signal.
        position_per_block: add the position signal at the start of every block, as
            the paper's figure 1 draws it, instead of once each time the stack is
            applied.
        separable: make the convolutions depthwise-separable.
        final_norm: normalise the output, as the authors' code does.

    Input: float tensor `(batch, length, width)` and boolean mask `(batch, length)`.
    Output: float tensor `(batch, length, width)`.
    """

    def __init__(
        self,
        blocks,
        convolutions,
        kernel_size,
        heads,
        feed_forward,
        dropout=0.0,
        survival=1.0,
        residual_scale=1.0,
        position_scale=1.0,
        position_per_block=False,
        separable=True,
        final_norm=True,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.blocks = blocks
        self.convolutions = convolutions
        self.kernel_size = kernel_size
        self.heads = heads
        self.feed_forward = feed_forward
        self.dropout = dropout
        self.survival = survival
        self.residual_scale = residual_scale
        self.position_scale = position_scale
        self.position_per_block = position_per_block
        self.separable = separable
        self.final_norm = final_norm

    @property
    def _sublayers_per_block(self):
        return self.convolutions + bool(self.heads) + 1

    def build(self, input_shape):
        width = input_shape[-1]
        depth = self.blocks * self._sublayers_per_block
        convolution = DepthwiseSeparableConv1D if self.separable else PlainConv1D
        self.sublayers = []
        for block in range(self.blocks):
            layers = [
                convolution(
                    width, self.kernel_size, name=f"block_{block}_convolution_{i}"
                )
                for i in range(self.convolutions)
            ]
            if self.heads:
                layers.append(
                    MultiHeadSelfAttention(self.heads, name=f"block_{block}_attention")
                )
            layers.append(
                FeedForward(self.feed_forward, name=f"block_{block}_feed_forward")
            )
            for layer in layers:
                level = len(self.sublayers) + 1
                residual = Residual(
                    layer,
                    dropout=self.dropout,
                    survival=survival_at(level, depth, self.survival),
                    scale=self.residual_scale,
                    name=f"residual_{layer.name}",
                )
                residual.build(input_shape)
                self.sublayers.append(residual)
        if self.final_norm:
            self.norm = keras.layers.LayerNormalization(
                epsilon=EPSILON, autocast=False, name="norm"
            )
            self.norm.build(input_shape)

    def call(self, x, mask, training=False):
        signal = self.position_scale * position_signal(ops.shape(x)[1], x.shape[-1])
        # Single precision from sub-layer to sub-layer, see `Residual`.
        x, signal = (ops.cast(tensor, self.variable_dtype) for tensor in (x, signal))
        for i, sublayer in enumerate(self.sublayers):
            if i == 0 or (
                self.position_per_block and i % self._sublayers_per_block == 0
            ):
                x = x + signal
            x = sublayer(x, mask=mask, training=training)
        return ops.cast(self.norm(x) if self.final_norm else x, self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "blocks": self.blocks,
            "convolutions": self.convolutions,
            "kernel_size": self.kernel_size,
            "heads": self.heads,
            "feed_forward": self.feed_forward,
            "dropout": self.dropout,
            "survival": self.survival,
            "residual_scale": self.residual_scale,
            "position_scale": self.position_scale,
            "position_per_block": self.position_per_block,
            "separable": self.separable,
            "final_norm": self.final_norm,
        }
