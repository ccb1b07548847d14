"""Tests of qanet.export.span_graph: in the graph as in Python."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from qanet import decoding
from qanet.export.span_graph import best_spans


@pytest.fixture(scope="module")
def graph():
    return tf.function(
        best_spans,
        input_signature=[
            tf.TensorSpec([None, 2], tf.float32),
            tf.TensorSpec([None], tf.float32),
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([], tf.float64),
            tf.TensorSpec([], tf.int32),
        ],
    )


# Whole numbers, so that sums are often equal.
NUMBERS = st.integers(-3, 3)
PAIRS = st.tuples(NUMBERS, NUMBERS)
TEXTS = st.tuples(st.lists(PAIRS, max_size=7), NUMBERS)


def expected_spans(text, no_answer, limit, top_k, threshold):
    """What Python's functions make of one text, rows of first, last and score."""
    spans = decoding.NO_SPANS
    if text:
        starts, ends = np.array(text, np.float32).T
        spans = decoding.best_spans(starts, ends, limit, top_k)
    # An answer begins at its first token and ends after its last.
    places = [(i, i + 1) for i in range(len(text))]
    answers = decoding.rank_answers(
        ["x" * len(text)], [places], [spans._replace(no_answer=no_answer)], top_k
    )
    rows = [
        (a.start, a.end - 1, a.score) if a.text else (-1, -1, a.score)
        for a in decoding.decide(answers, threshold)
    ][:top_k]
    return rows + [(-1, -1, 0.0)] * (top_k - len(rows))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(TEXTS, max_size=4),
    st.booleans(),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.1, 0.3, 0.7, 1.0]),
    st.integers(1, 12),
)
def test_spans_are_those_of_python(graph, texts, knows, limit, threshold, top_k):
    logits = np.array([pair for text, _ in texts for pair in text], np.float32)
    counts = [len(text) for text, _ in texts]
    no_answer = [none if knows else -np.inf for _, none in texts]

    first, last, score = graph(
        logits.reshape(-1, 2), no_answer, counts, limit, threshold, top_k
    )

    assert first.shape == last.shape == score.shape == (len(texts), top_k)
    for (text, _), none, *found in zip(
        texts, no_answer, first, last, score, strict=True
    ):
        expected = expected_spans(text, none, limit, top_k, threshold)
        columns = [np.array(column) for column in zip(*expected, strict=True)]
        # Of equal probabilities either may come first.
        np.testing.assert_allclose(found[2], columns[2], atol=1e-6)
        rows = zip(*(column.numpy().tolist() for column in found), strict=True)
        assert_same_up_to_ties(list(rows), expected)


def assert_same_up_to_ties(rows, expected):
    """As rows of equal scores are only swapped between spans and no answer."""
    spans = [row[:2] for row in rows if row[0] >= 0]
    assert spans == [row[:2] for row in expected if row[0] >= 0][: len(spans)]
    assert (rows[0][0] < 0) == (expected[0][0] < 0)
