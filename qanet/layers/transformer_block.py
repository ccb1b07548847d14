"""The block of the Transformer (Vaswani et al., 2017, section 3.1), as in BERT."""

import keras

from qanet.layers.dropout import Dropout
from qanet.layers.feed_forward import FeedForward
from qanet.layers.self_attention import MultiHeadSelfAttention


def transformer_blocks(model):
    """The blocks of a model, the lowest first."""
    return [layer for layer in model.layers if isinstance(layer, TransformerBlock)]


@keras.saving.register_keras_serializable(package="qanet")
class TransformerBlock(keras.layers.Layer):
    """Self-attention, then a feed-forward layer, each in layer_norm(x + sublayer(x)).

    Args:
        heads: heads of the self-attention.
        feed_forward: inner size of the feed-forward layer.
        dropout: dropout rate of either sub-layer's output.
        attention_dropout: dropout rate of the attention's weights.

    Input: float tensor `(batch, length, width)` and boolean mask `(batch, length)`.
    Output: float tensor `(batch, length, width)`.
    """

    def __init__(
        self, heads, feed_forward, dropout=0.0, attention_dropout=0.0, **kwargs
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.attention = MultiHeadSelfAttention(
            heads, attention_dropout, bias=True, name="attention"
        )
        self.feed_forward = FeedForward(
            feed_forward, activation="gelu", name="feed_forward"
        )
        self.dropout = Dropout(dropout, name="dropout")
        self.attention_norm, self.feed_forward_norm = (
            keras.layers.LayerNormalization(epsilon=1e-12, name=f"{name}_norm")
            for name in ("attention", "feed_forward")
        )

    def build(self, input_shape):
        for layer in (
            self.attention,
            self.attention_norm,
            self.feed_forward,
            self.feed_forward_norm,
        ):
            layer.build(input_shape)

    def call(self, x, mask, training=False):
        y = self.attention(x, mask=mask, training=training)
        x = self.attention_norm(x + self.dropout(y, training=training))
        y = self.feed_forward(x, training=training)
        return self.feed_forward_norm(x + self.dropout(y, training=training))

    def weights_of(self, x, mask):
        """See `MultiHeadSelfAttention.weights_of`."""
        return self.attention.weights_of(x, mask)

    def compute_output_shape(self, input_shape, *others):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "heads": self.attention.heads,
            "feed_forward": self.feed_forward.inner,
            "dropout": self.dropout.rate,
            "attention_dropout": self.attention.dropout.rate,
        }
