"""Residual sub-layer (QANet, section 2.2) with stochastic depth (section 4.1)."""

import keras
from keras import ops

from qanet.layers.dropout import Dropout, keep_mask

# Of the layer normalisations of residual blocks.
EPSILON = 1e-6


@keras.saving.register_keras_serializable(package="qanet")
class Residual(keras.layers.Layer):
    """x + scale * keep * dropout(layer(layer_norm(x))).

    In training the sub-layer is left out with probability `1 - survival`, for each
    example on its own; otherwise its output is scaled by `survival` instead
    (Huang et al., 2016, equation 5; they and QANet's authors draw once for the whole
    batch).

    Where the sub-layer computes in half precision, the sum does not: over many
    sub-layers it would lose what each of them adds.

    Args:
        layer: the sub-layer, called with `(x, mask=mask, training=training)`.
        dropout: dropout rate of the sub-layer's output.
        survival: probability that the sub-layer takes part in training.
        scale: fixed factor of the sub-layer's output. Below one, a stack starts close
            to the identity and lets a word still be recognised at its end.

    Input: float tensor `(batch, length, width)` and boolean mask `(batch, length)`.
    Output: float tensor of the shape and dtype of the input.
    """

    def __init__(self, layer, dropout=0.0, survival=1.0, scale=1.0, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.layer = layer
        self.survival = survival
        self.scale = scale
        self.norm = keras.layers.LayerNormalization(
            epsilon=EPSILON, autocast=False, name="norm"
        )
        self.dropout = Dropout(dropout, name="dropout")
        if survival < 1.0:
            self.seed_generator = keras.random.SeedGenerator()

    def build(self, input_shape):
        self.norm.build(input_shape)
        if not self.layer.built:
            self.layer.build(input_shape)

    def call(self, x, mask, training=False):
        y = self.layer(self.norm(x), mask=mask, training=training)
        y = ops.cast(self.scale * self.dropout(y, training=training), x.dtype)
        if self.survival == 1.0:
            return x + y
        if not training:
            return x + self.survival * y
        seed = ops.cast(self.seed_generator.next(), "uint32")
        keep = keep_mask((ops.shape(x)[0], 1, 1), 1.0 - self.survival, seed)
        return x + ops.where(keep, y, ops.zeros((), dtype=y.dtype))

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "layer": keras.saving.serialize_keras_object(self.layer),
            "dropout": self.dropout.rate,
            "survival": self.survival,
            "scale": self.scale,
        }

    @classmethod
    def from_config(cls, config):
        layer = keras.saving.deserialize_keras_object(config.pop("layer"))
        return cls(layer, **config)
