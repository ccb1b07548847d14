"""Tests of qanet.layers.context_query_attention."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.context_query_attention import ContextQueryAttention

CONTEXT_LENGTHS, QUESTION_LENGTHS = (6, 4, 1), (3, 5, 2)
CONTEXT_MASK = np.arange(6) < np.array(CONTEXT_LENGTHS)[:, None]
QUESTION_MASK = np.arange(5) < np.array(QUESTION_LENGTHS)[:, None]


@pytest.fixture
def texts(rng):
    """Padded contexts and questions, with rubbish at the padding."""
    context = rng.normal(size=(3, 6, 8)).astype("float32")
    question = rng.normal(size=(3, 5, 8)).astype("float32")
    return context, question


def built(texts):
    layer = ContextQueryAttention()
    layer.build(*(text.shape for text in texts))
    return layer


def test_against_numpy_with_both_masks(texts, randomise, reference):
    layer = built(texts)
    weights = randomise(layer)

    output = ops.convert_to_numpy(layer(*texts, CONTEXT_MASK, QUESTION_MASK))

    assert layer.compute_output_shape(*(t.shape for t in texts)) == output.shape
    for i, (n, m) in enumerate(zip(CONTEXT_LENGTHS, QUESTION_LENGTHS, strict=True)):
        context, question = (text[i].astype("float64") for text in texts)
        expected = reference.context_query_attention(context[:n], question[:m], weights)
        np.testing.assert_allclose(output[i, :n], expected, atol=1e-5)


def test_softmax_over_the_context_leaves_context_padding_out(texts, randomise):
    layer = built(texts)
    randomise(layer)
    context, question = texts
    other = np.where(CONTEXT_MASK[..., None], context, 100.0).astype("float32")

    before, after = (
        ops.convert_to_numpy(layer(text, question, CONTEXT_MASK, QUESTION_MASK))
        for text in (context, other)
    )

    np.testing.assert_allclose(before[CONTEXT_MASK], after[CONTEXT_MASK], atol=1e-6)


def test_softmax_over_the_question_leaves_question_padding_out(texts, randomise):
    layer = built(texts)
    randomise(layer)
    context, question = texts
    other = np.where(QUESTION_MASK[..., None], question, 100.0).astype("float32")

    before, after = (
        ops.convert_to_numpy(layer(context, text, CONTEXT_MASK, QUESTION_MASK))
        for text in (question, other)
    )

    np.testing.assert_allclose(before[CONTEXT_MASK], after[CONTEXT_MASK], atol=1e-6)


def test_a_new_layer_has_no_zero_gradients(texts, gradients, call_with):
    """It starts from a dot product, from which all three weights can move."""
    layer = built(texts)

    def loss(*values):
        output = call_with(layer, values, *texts, CONTEXT_MASK, QUESTION_MASK)
        return ops.sum(ops.square(output))

    for gradient in gradients(loss, *layer.get_weights()):
        assert np.all(gradient != 0.0)


def test_an_empty_question_or_context_is_finite(texts):
    layer = built(texts)
    nothing = np.zeros_like(CONTEXT_MASK), np.zeros_like(QUESTION_MASK)

    for masks in ((CONTEXT_MASK, nothing[1]), (nothing[0], QUESTION_MASK), nothing):
        output = ops.convert_to_numpy(layer(*texts, *masks))
        assert np.all(np.isfinite(output))


def test_round_trip(texts, check_round_trip):
    check_round_trip(ContextQueryAttention(), *texts, CONTEXT_MASK, QUESTION_MASK)


def test_mixed_bfloat16(mixed_bfloat16, texts, randomise, reference):
    layer = built(texts)
    weights = randomise(layer)

    output = layer(*texts, CONTEXT_MASK, QUESTION_MASK)

    assert ops.dtype(output) == "bfloat16"
    context, question = (text[1].astype("float64") for text in texts)
    expected = reference.context_query_attention(context[:4], question, weights)
    actual = ops.convert_to_numpy(output)[1, :4].astype("float64")
    np.testing.assert_allclose(actual, expected, atol=0.1)
