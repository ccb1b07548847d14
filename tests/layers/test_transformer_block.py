"""Tests of qanet.layers.transformer_block.

What `transformers` computes with such blocks is in tests/models/test_bert_weights.py.
"""

import math

import numpy as np
import pytest
from keras import ops

from qanet.layers.transformer_block import TransformerBlock

LENGTHS = (4, 2)
MASK = np.arange(4) < np.array(LENGTHS)[:, None]


@pytest.fixture
def x(rng):
    """Two texts, with rubbish at the padding."""
    return rng.normal(size=(2, 4, 6)).astype("float32")


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def attention_weights(x, weights, heads):
    """Of each head, `(heads, length, length)`, and the values."""
    joined = x @ weights["query_key_value/kernel"] + weights["query_key_value/bias"]
    query, key, value = np.split(joined, 3, axis=1)
    size = x.shape[1] // heads
    result = []
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        logits = query[:, part] @ key[:, part].T / math.sqrt(size)
        exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
        result.append(exponents / exponents.sum(axis=1, keepdims=True))
    return np.array(result), np.split(value, heads, axis=1)


def block(x, weights, reference, heads):
    below = reference.below
    attention = below(weights, "attention")
    shares, values = attention_weights(x, attention, heads)
    pairs = zip(shares, values, strict=True)
    y = np.concatenate([share @ value for share, value in pairs], axis=1)
    y = y @ attention["output/kernel"] + attention["output/bias"]
    x = reference.layer_norm(x + y, below(weights, "attention_norm"))
    inner = below(weights, "feed_forward")
    y = gelu(x @ inner["expand/kernel"] + inner["expand/bias"])
    y = y @ inner["contract/kernel"] + inner["contract/bias"]
    return reference.layer_norm(x + y, below(weights, "feed_forward_norm"))


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_against_numpy(heads, x, randomise, reference):
    layer = TransformerBlock(heads, feed_forward=5)
    layer.build(x.shape)
    weights = randomise(layer)

    output = ops.convert_to_numpy(layer(x, MASK))
    told = ops.convert_to_numpy(layer.weights_of(x, MASK))

    assert output.shape == layer.compute_output_shape(x.shape)
    for i, length in enumerate(LENGTHS):
        text = x[i, :length].astype("float64")
        expected = block(text, weights, reference, heads)
        np.testing.assert_allclose(output[i, :length], expected, atol=1e-5)
        attention = reference.below(weights, "attention")
        shares = attention_weights(text, attention, heads)[0].mean(axis=0)
        np.testing.assert_allclose(told[i, :length, :length], shares, atol=1e-5)
        assert not told[i, :length, length:].any()


@pytest.mark.parametrize("rates", [{"dropout": 0.5}, {"attention_dropout": 0.5}])
def test_each_dropout_acts_in_training_alone(rates, x, fixed_seed):
    layer = TransformerBlock(2, feed_forward=5, **rates)
    calm, again = (ops.convert_to_numpy(layer(x, MASK)) for _ in range(2))
    noisy = ops.convert_to_numpy(layer(x, MASK, training=True))
    np.testing.assert_array_equal(calm, again)
    assert np.any(noisy != calm)


def test_both_sub_layers_are_dropped(x, randomise, fixed_seed):
    layer = TransformerBlock(2, feed_forward=5, dropout=1 - 1e-12)
    layer.build(x.shape)
    randomise(layer)
    expected = layer.feed_forward_norm(layer.attention_norm(x))
    found = layer(x, MASK, training=True)
    np.testing.assert_allclose(
        ops.convert_to_numpy(found), ops.convert_to_numpy(expected), atol=1e-5
    )


def test_round_trip(x, check_round_trip):
    layer = TransformerBlock(2, feed_forward=5, dropout=0.1, attention_dropout=0.2)
    check_round_trip(layer, x, MASK)
