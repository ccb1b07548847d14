"""Tests of qanet.decoding."""

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qanet import decoding
from qanet.decoding import (
    NO_SPANS,
    Answer,
    ContextLogits,
    Spans,
    TokenSpan,
    best_spans,
    decide,
    join_windows,
    log_totals,
    probabilities,
    rank_answers,
    spans_of_context,
    split_no_answer,
)


def brute_force(start_logits, end_logits, max_answer_tokens):
    """All allowed spans with sums and scores, straight from the definition."""
    sums = {
        (first, last): start_logits[first] + end_logits[last]
        for first in range(len(start_logits))
        for last in range(first, len(start_logits))
        if last - first + 1 <= max_answer_tokens
    }
    peak = max(sums.values())
    total = math.fsum(math.exp(value - peak) for value in sums.values())
    ranked = sorted(sums, key=lambda span: (-sums[span], span))
    return [(*span, sums[span], math.exp(sums[span] - peak) / total) for span in ranked]


def scores(spans):
    return [math.exp(span.logit - spans.log_total) for span in spans.best]


# Quarters add without rounding and from so few of them ties are common.
logit_pairs = st.lists(
    st.tuples(*[st.integers(-12, 12).map(lambda quarters: quarters / 4)] * 2),
    min_size=1,
    max_size=12,
)


@given(logit_pairs, st.integers(1, 14), st.integers(1, 100), st.integers(1, 13))
def test_best_spans_agree_with_brute_force(pairs, max_answer_tokens, top_k, together):
    starts, ends = np.array(pairs, np.float32).T
    expected = brute_force(starts.tolist(), ends.tolist(), max_answer_tokens)[:top_k]

    with mock.patch.object(decoding, "STARTS", together):
        spans = best_spans(starts, ends, max_answer_tokens, top_k)

    assert [tuple(span) for span in spans.best] == [span[:3] for span in expected]
    np.testing.assert_allclose(scores(spans), [span[3] for span in expected])


@given(logit_pairs, st.integers(1, 14))
def test_scores_of_all_allowed_spans_sum_to_one(pairs, max_answer_tokens):
    starts, ends = np.array(pairs).T

    spans = best_spans(starts, ends, max_answer_tokens, top_k=1000)

    assert math.isclose(sum(scores(spans)), 1.0)


def test_independent_argmax_with_swap():
    # The best start (3) comes after the best end (0): swapped they would give 0 to 3.
    starts = np.array([1.0, 0.0, 0.0, 5.0])
    ends = np.array([4.5, 0.0, 0.0, 1.0])

    ((first, last, _),) = best_spans(starts, ends).best

    assert (first, last) == (3, 3)


def test_length_limit_off_by_one():
    def best_from_first_token_to(last_token):
        # Only a span from the first token on is worth taking.
        starts, ends = np.zeros(40), np.zeros(40)
        starts[0], ends[last_token] = 9.0, 9.0
        ((first, last, _),) = best_spans(starts, ends, max_answer_tokens=30).best
        return first, last

    assert best_from_first_token_to(29) == (0, 29)
    # One token more is too long; of what remains, the first of equals is taken.
    assert best_from_first_token_to(30) == (0, 0)


def test_fewer_spans_than_asked_for():
    spans = best_spans(np.zeros(3), np.zeros(3), max_answer_tokens=2, top_k=20)

    assert [span[:2] for span in spans.best] == [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2)]


def test_ties_go_to_the_smaller_start_then_the_smaller_end():
    spans = best_spans(np.zeros(3), np.zeros(3), top_k=4)

    assert [span[:2] for span in spans.best] == [(0, 0), (0, 1), (0, 2), (1, 1)]


def test_half_precision_logits_do_not_overflow():
    logits = np.array([60000, -60000], np.float16)

    assert best_spans(logits, logits) == Spans([TokenSpan(0, 0, 120_000)], 120_000)


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
    spans = Spans([TokenSpan(1, 4, math.log(3)), TokenSpan(6, 6, 0.0)], math.log(4))

    answers = rank_answers([context], [token_spans], [spans], top_k=2)

    assert [(a.text, a.start, a.end, a.passage) for a in answers] == [
        ("said “don’t”", 5, 17, 0),
        ("𝒳", 21, 22, 0),
    ]
    np.testing.assert_allclose([answer.score for answer in answers], [0.75, 0.25])


def test_answers_of_several_contexts_compete_by_their_logits():
    places = [(0, 1), (2, 3)]
    spans = [
        Spans([TokenSpan(0, 0, math.log(2)), TokenSpan(1, 1, 0.0)], math.log(4)),
        NO_SPANS,
        Spans(
            [TokenSpan(0, 1, math.log(5)), TokenSpan(0, 0, math.log(2))], math.log(12)
        ),
    ]

    answers = rank_answers(["a b", "", "c d"], [places, [], places], spans, top_k=3)

    # The first of two that are equally good is that of the earlier context.
    assert [(a.text, a.passage) for a in answers] == [("c d", 2), ("a", 0), ("c", 2)]
    np.testing.assert_allclose([a.score for a in answers], [5 / 16, 2 / 16, 2 / 16])


def test_no_spans_give_one_empty_answer():
    assert rank_answers([" "], [[]], [NO_SPANS], 3) == [Answer("", 0, 0, 0.0)]


def test_no_answer_competes_with_the_spans_of_all_contexts():
    places = [(0, 1), (2, 3)]
    spans = [
        Spans(
            [TokenSpan(0, 0, math.log(2)), TokenSpan(1, 1, 0.0)],
            math.log(4),
            math.log(7),
        ),
        # The context that is least sure of having none counts.
        Spans([TokenSpan(0, 1, math.log(5))], math.log(6), math.log(3)),
        NO_SPANS._replace(no_answer=math.log(9)),
    ]

    answers = rank_answers(["a b", "c d", " "], [places, places, []], spans, top_k=2)

    # The two best spans, and no answer at its place.
    assert [(a.text, a.start, a.end, a.passage) for a in answers] == [
        ("c d", 0, 3, 1),
        ("", 0, 0, 0),
        ("a", 0, 1, 0),
    ]
    np.testing.assert_allclose([a.score for a in answers], [5 / 13, 3 / 13, 2 / 13])


def test_a_context_without_a_token_has_surely_no_answer():
    spans = [NO_SPANS._replace(no_answer=-3.0)]
    assert rank_answers([" "], [[]], spans, 3) == [Answer("", 0, 0, 1.0)]


def scored(text, score):
    return Answer(text, 0, len(text), score)


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [(0.0, ["", "a", "b"]), (0.29, ["", "a", "b"]), (0.3, ["a", "", "b"])],
)
def test_above_its_threshold_no_answer_is_the_answer(threshold, expected):
    answers = [scored("a", 0.5), scored("", 0.3), scored("b", 0.1)]
    assert [answer.text for answer in decide(answers, threshold)] == expected


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=5),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_no_answer_is_first_above_the_threshold_alone(scores, none, threshold):
    spans = [scored(f"s{i}", s) for i, s in enumerate(sorted(scores, reverse=True))]
    ranked = sorted([*spans, scored("", none)], key=lambda answer: -answer.score)
    decided = decide(ranked, threshold)
    assert (not decided[0].text) == (none > threshold)
    # The spans keep their order, and nothing is lost.
    assert [answer for answer in decided if answer.text] == spans
    assert len(decided) == len(ranked)
    # But for the first place the order is that of the scores.
    rest = [answer.score for answer in decided[1:]]
    assert rest == sorted(rest, reverse=True)


def test_answers_without_no_answer_are_left_as_they_are():
    answers = [scored("a", 0.5), scored("b", 0.4)]
    assert decide(answers, 0.0) == answers
    assert decide([scored("", 0.0)], 0.5) == [scored("", 0.0)]


# Windows.


@st.composite
def windows(draw):
    """The length of a context, and windows that cover it and overlap."""
    length, size = draw(st.integers(1, 40)), draw(st.integers(2, 12))
    stride = draw(st.integers(1, size))
    offsets = [0]
    while offsets[-1] + size < length:
        offsets.append(offsets[-1] + stride)
    return length, [(offset, min(size, length - offset)) for offset in offsets]


@given(windows())
def test_a_token_is_told_by_the_window_it_is_most_central_in(cut):
    length, places = cut
    # Logits that say in which window and at which place of it they stand.
    told = [np.array([[i] * size, range(size)]) for i, (_, size) in enumerate(places)]
    offsets = np.array([offset for offset, _ in places])

    window, place = join_windows(told, offsets, np.full(len(places), -np.inf)).tokens

    assert len(window) == length
    for token in range(length):
        centrality = {
            i: min(token - offset, offset + size - 1 - token)
            for i, (offset, size) in enumerate(places)
            if offset <= token < offset + size
        }
        chosen = window[token]
        assert place[token] == token - places[chosen][0]
        # Neighbours share their overlap; where more than two do, any may tell.
        others = [centrality.get(chosen - 1, -1), centrality.get(chosen + 1, -1)]
        assert centrality[chosen] >= max(others) - 1


def test_no_answer_is_split_off():
    logits = np.arange(12.0).reshape(2, 2, 3)
    tokens, no_answer = split_no_answer(logits)
    # No answer has 0 and 3, then 6 and 9: 1.5 and 7.5 on both sides.
    assert tokens.tolist() == [[[2.5, 3.5], [2.5, 3.5]], [[8.5, 9.5], [8.5, 9.5]]]
    assert no_answer.tolist() == [0 + 3, 6 + 9]


def test_what_both_sides_say_of_no_answer_is_kept():
    random = np.random.default_rng(3)
    logits = random.normal(size=(4, 2, 6)) * 3
    expected = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    for of_tokens, none, shares in zip(*split_no_answer(logits), expected, strict=True):
        found = probabilities(ContextLogits(of_tokens, none))
        np.testing.assert_allclose(found, shares, rtol=1e-9)


def test_there_is_no_answer_where_no_window_has_one():
    logits = [np.array([[0.0, 3.0], [1.0, 2.0]]), np.array([[5.0], [4.0]])]
    joined = join_windows(logits, np.array([0, 2]), np.array([7.0, -1.0]))
    found = spans_of_context(joined, 3, 2)
    whole = best_spans(np.array([0.0, 3.0, 5.0]), np.array([1.0, 2.0, 4.0]), 3, 2)
    assert found == whole._replace(no_answer=-1.0)


def test_a_context_without_a_token_has_no_spans():
    found = spans_of_context(ContextLogits(np.zeros((2, 0)), 2.0), 30, 5)
    assert found == NO_SPANS._replace(no_answer=2.0)


def test_probabilities_are_a_softmax(rng):
    tokens = rng.normal(size=(2, 4))
    expected = np.exp(tokens) / np.exp(tokens).sum(axis=1, keepdims=True)
    actual = probabilities(ContextLogits(tokens))
    np.testing.assert_allclose(actual[:, 1:], expected)
    assert actual[:, 0].tolist() == [0, 0]


def test_log_totals_are_what_is_divided_by(rng):
    tokens = rng.normal(size=(2, 4))
    found = log_totals(ContextLogits(tokens, 3.0))
    np.testing.assert_allclose(found, np.log(np.exp(tokens).sum(axis=1) + np.exp(1.5)))
    assert log_totals(ContextLogits(np.zeros((2, 0)))).tolist() == [0, 0]


def test_no_answer_takes_its_share():
    # Logits of 0 and, of no answer, twice the logarithm of 2.
    actual = probabilities(ContextLogits(np.zeros((2, 2)), 2 * np.log(2.0)))
    np.testing.assert_allclose(actual, [[0.5, 0.25, 0.25]] * 2)


def test_probabilities_of_large_logits_and_of_none():
    large = probabilities(
        ContextLogits(np.array([[3e4, -3e4], [-3e4, 3e4]], "float16"))
    )
    np.testing.assert_array_equal(large, [[0, 1, 0], [0, 0, 1]])
    nothing = np.zeros((2, 0))
    assert probabilities(ContextLogits(nothing)).tolist() == [[0], [0]]
    assert probabilities(ContextLogits(nothing, 3.0)).tolist() == [[1], [1]]
