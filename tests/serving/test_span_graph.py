"""Tests of qanet.serving.span_graph: in the graph as in Python."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from qanet import decoding
from qanet.serving.span_graph import best_spans


@pytest.fixture(scope="module")
def graph():
    return tf.function(
        best_spans,
        input_signature=[
            tf.TensorSpec([None, 2], tf.float32),
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([], tf.int32),
        ],
    )


# Whole numbers, so that sums are often equal.
PAIRS = st.tuples(st.integers(-3, 3), st.integers(-3, 3))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(PAIRS, max_size=7), max_size=4),
    st.integers(1, 4),
    st.integers(1, 12),
)
def test_spans_are_those_of_python(graph, texts, limit, top_k):
    logits = np.array([pair for text in texts for pair in text], np.float32)
    counts = [len(text) for text in texts]

    first, last, score = graph(logits.reshape(-1, 2), counts, limit, top_k)

    assert first.shape == last.shape == score.shape == (len(texts), top_k)
    for text, *found in zip(texts, first, last, score, strict=True):
        expected = []
        if text:
            starts, ends = np.array(text, np.float32).T
            spans = decoding.best_spans(starts, ends, limit, top_k)
            expected = [
                (span.first, span.last, np.exp(span.logit - spans.log_total))
                for span in spans.best
            ]
        expected += [(-1, -1, 0.0)] * (top_k - len(expected))
        columns = [np.array(column) for column in zip(*expected, strict=True)]
        np.testing.assert_array_equal(found[0], columns[0])
        np.testing.assert_array_equal(found[1], columns[1])
        np.testing.assert_allclose(found[2], columns[2], atol=1e-6)
