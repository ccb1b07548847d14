"""Highway network (Srivastava et al., 2015; QANet, section 2.2)."""

import keras

from qanet.layers.dropout import Dropout


@keras.saving.register_keras_serializable(package="qanet")
class Highway(keras.layers.Layer):
    """Layers that pass a learned share of their input on unchanged.

    y = g * relu(W_h x + b_h) + (1 - g) * x with g = sigmoid(W_g x + b_g).

    Args:
        layers: number of layers.
        dropout: dropout rate of each layer's transform.

    Input and output: float tensor `(batch, length, width)`.
    """

    def __init__(self, layers=2, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.layers = layers
        self.dropout = dropout

    def build(self, input_shape):
        width = input_shape[-1]
        self.transforms = []
        self.gates = []
        self.dropouts = []
        for i in range(self.layers):
            transform = keras.layers.Dense(
                width, activation="relu", name=f"transform_{i}"
            )
            # The gate starts three quarters closed, so that early training sees the
            # embeddings themselves.
            gate = keras.layers.Dense(
                width,
                activation="sigmoid",
                bias_initializer=keras.initializers.Constant(-1.0),
                name=f"gate_{i}",
            )
            transform.build(input_shape)
            gate.build(input_shape)
            self.transforms.append(transform)
            self.gates.append(gate)
            self.dropouts.append(Dropout(self.dropout, name=f"dropout_{i}"))

    def call(self, x, training=False):
        for transform, gate, dropout in zip(
            self.transforms, self.gates, self.dropouts, strict=True
        ):
            share = gate(x)
            transformed = dropout(transform(x), training=training)
            x = share * transformed + (1.0 - share) * x
        return x

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "layers": self.layers,
            "dropout": self.dropout,
        }
