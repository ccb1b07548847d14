"""Tests of qanet.layers.attention_over_attention."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.attention_over_attention import AttentionOverAttention
from qanet.layers.numerics import MASKED_LOGIT


def test_against_numpy(texts, lengths, reference):
    output = ops.convert_to_numpy(AttentionOverAttention()(*texts))
    for i, (n, m) in enumerate(lengths):
        context, question = (
            text[i, :length].astype("float64")
            for text, length in zip(texts, (n, m), strict=False)
        )
        expected = reference.attention_over_attention(context, question)
        np.testing.assert_allclose(np.exp(output[i, :n]), expected, atol=1e-6)
        assert np.exp(output[i, :n]).sum() == pytest.approx(1, abs=1e-5)
        assert np.all(output[i, n:] == MASKED_LOGIT)


def test_attention_that_is_next_to_none_has_a_logarithm(texts):
    context, question, *masks = texts
    output = ops.convert_to_numpy(
        AttentionOverAttention()(40 * context, 40 * question, *masks)
    )
    assert np.all(np.isfinite(output))
    assert np.all(output[masks[0]] > MASKED_LOGIT / 2)


def test_round_trip(texts, check_round_trip):
    check_round_trip(AttentionOverAttention(), *texts)
