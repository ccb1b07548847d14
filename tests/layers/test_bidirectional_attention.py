"""Tests of qanet.layers.bidirectional_attention."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.bidirectional_attention import BidirectionalAttention

CONTEXTS, QUESTIONS = (4, 2), (3, 1)


@pytest.fixture
def texts(rng):
    """Vectors of contexts and questions, noise at their padding, and the masks."""
    context = rng.normal(size=(2, 4, 5)).astype("float32")
    question = rng.normal(size=(2, 3, 5)).astype("float32")
    context_mask = np.arange(4) < np.array(CONTEXTS)[:, None]
    question_mask = np.arange(3) < np.array(QUESTIONS)[:, None]
    return context, question, context_mask, question_mask


def softmax(x):
    weights = np.exp(x - x.max())
    return weights / weights.sum()


def numpy_attention(context, question, weights):
    """On one example without padding, word by word as in the paper."""
    w = np.concatenate(
        [weights[f"{name}_weight"] for name in ("context", "question", "product")]
    )
    similarity = np.array(
        [[w @ np.concatenate([h, u, h * u]) for u in question] for h in context]
    )
    summed = softmax(similarity.max(axis=1)) @ context
    rows = []
    for h, row in zip(context, similarity, strict=True):
        attended = softmax(row) @ question
        rows.append(np.concatenate([h, attended, h * attended, h * summed]))
    return np.array(rows)


def test_against_numpy(texts, randomise):
    layer = BidirectionalAttention()
    layer(*texts)
    weights = randomise(layer)
    output = ops.convert_to_numpy(layer(*texts))
    assert output.shape == (2, 4, 20)
    for i, (n, m) in enumerate(zip(CONTEXTS, QUESTIONS, strict=True)):
        expected = numpy_attention(texts[0][i, :n], texts[1][i, :m], weights)
        np.testing.assert_allclose(output[i, :n], expected, atol=1e-5)


def test_it_is_made_again_from_its_configuration(texts, check_round_trip):
    check_round_trip(BidirectionalAttention(), *texts)
