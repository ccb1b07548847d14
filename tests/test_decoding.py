"""Tests of qanet.decoding."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qanet.decoding import Answer, answers_from_spans, best_spans


def brute_force(start_logits, end_logits, max_answer_tokens):
    """All allowed spans with their scores, straight from the definition."""
    sums = {
        (first, last): start_logits[first] + end_logits[last]
        for first in range(len(start_logits))
        for last in range(first, len(start_logits))
        if last - first + 1 <= max_answer_tokens
    }
    peak = max(sums.values())
    total = math.fsum(math.exp(value - peak) for value in sums.values())
    ranked = sorted(sums, key=lambda span: (-sums[span], span))
    return [(*span, math.exp(sums[span] - peak) / total) for span in ranked]


# Quarters add without rounding and from so few of them ties are common.
logit_pairs = st.lists(
    st.tuples(*[st.integers(-12, 12).map(lambda quarters: quarters / 4)] * 2),
    min_size=1,
    max_size=12,
)


@given(logit_pairs, st.integers(1, 14), st.integers(1, 100))
def test_best_spans_agree_with_brute_force(pairs, max_answer_tokens, top_k):
    starts, ends = np.array(pairs, np.float32).T
    expected = brute_force(starts.tolist(), ends.tolist(), max_answer_tokens)[:top_k]

    spans = best_spans(starts, ends, max_answer_tokens, top_k)

    assert [span[:2] for span in spans] == [span[:2] for span in expected]
    np.testing.assert_allclose([s[2] for s in spans], [s[2] for s in expected])


@given(logit_pairs, st.integers(1, 14))
def test_scores_of_all_allowed_spans_sum_to_one(pairs, max_answer_tokens):
    starts, ends = np.array(pairs).T

    spans = best_spans(starts, ends, max_answer_tokens, top_k=1000)

    assert math.isclose(sum(score for _, _, score in spans), 1.0)


def test_independent_argmax_with_swap():
    # The best start (3) comes after the best end (0): swapped they would give 0 to 3.
    starts = np.array([1.0, 0.0, 0.0, 5.0])
    ends = np.array([4.5, 0.0, 0.0, 1.0])

    ((first, last, _),) = best_spans(starts, ends)

    assert (first, last) == (3, 3)


def test_length_limit_off_by_one():
    def best_from_first_token_to(last_token):
        # Only a span from the first token on is worth taking.
        starts, ends = np.zeros(40), np.zeros(40)
        starts[0], ends[last_token] = 9.0, 9.0
        ((first, last, _),) = best_spans(starts, ends, max_answer_tokens=30)
        return first, last

    assert best_from_first_token_to(29) == (0, 29)
    # One token more is too long; of what remains, the first of equals is taken.
    assert best_from_first_token_to(30) == (0, 0)


def test_fewer_spans_than_asked_for():
    spans = best_spans(np.zeros(3), np.zeros(3), max_answer_tokens=2, top_k=20)

    assert [span[:2] for span in spans] == [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2)]


def test_ties_go_to_the_smaller_start_then_the_smaller_end():
    spans = best_spans(np.zeros(3), np.zeros(3), top_k=4)

    assert [span[:2] for span in spans] == [(0, 0), (0, 1), (0, 2), (1, 1)]


def test_half_precision_logits_do_not_overflow():
    logits = np.array([60000, -60000], np.float16)

    assert best_spans(logits, logits) == [(0, 0, 1.0)]


def test_logits_are_left_as_they_were():
    starts, ends = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    best_spans(starts, ends)

    assert starts.tolist() == [1.0, 2.0]
    assert ends.tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("starts", "ends"),
    [
        ([], []),
        ([1.0], [1.0, 2.0]),
        ([[1.0]], [[1.0]]),
        ([math.nan], [1.0]),
        ([1.0], [math.inf]),
        ([1.0], [-math.inf]),
    ],
)
def test_unusable_logits_are_refused(starts, ends):
    with pytest.raises(ValueError, match="start and end logits must be"):
        best_spans(np.array(starts), np.array(ends))


@pytest.mark.parametrize("limits", [(0, 1), (1, 0), (-1, 1)])
def test_limits_below_one_are_refused(limits):
    with pytest.raises(ValueError, match="must be at least 1"):
        best_spans(np.zeros(2), np.zeros(2), *limits)


def test_answers_are_cut_from_the_original_context():
    # Quotes and spacing stay as they are in the context, whatever a tokenizer does.
    context = "She  said “don’t”\tto 𝒳."
    token_spans = [(0, 3), (5, 9), (10, 11), (11, 16), (16, 17), (18, 20), (21, 22)]

    answers = answers_from_spans(context, token_spans, [(1, 4, 0.75), (6, 6, 0.25)])

    assert answers == [
        Answer("said “don’t”", 5, 17, 0.75),
        Answer("𝒳", 21, 22, 0.25),
    ]


def test_no_spans_give_no_answers():
    assert answers_from_spans("text", [(0, 4)], []) == []
