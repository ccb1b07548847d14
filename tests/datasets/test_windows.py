"""Tests of qanet.datasets.windows."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_examples import data_config, features_of

from qanet.datasets.features import build_features
from qanet.datasets.squad import Example, Span
from qanet.datasets.windows import reading_windows, training_windows
from qanet.models.limits import ReadingLimits

LIMITS = ReadingLimits()

# Training.


@st.composite
def contexts(draw):
    """A context length, and the first and last token of an answer or None."""
    length = draw(st.integers(1, 40))
    if draw(st.booleans()):
        first = draw(st.integers(0, length - 1))
        return length, (first, draw(st.integers(first, length - 1)))
    return length, None


@given(
    st.lists(contexts(), max_size=6),
    st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(n, 20))),
    st.integers(0, 9),
)
def test_a_training_window_holds_the_answer(texts, limits, seed):
    answer_limit, context_limit = limits
    config = data_config(context_limit, answer_limit=answer_limit)
    features = features_of(*texts)
    windows = training_windows(features, config, seed)
    # Left out are exactly those without an answer and those with too long a one.
    assert windows.examples.tolist() == [
        i
        for i, (_, answer) in enumerate(texts)
        if answer and answer[1] - answer[0] + 1 <= answer_limit
    ]
    for i, offset, length in zip(
        windows.examples, windows.offsets, windows.lengths, strict=True
    ):
        context_length, (first, last) = texts[i]
        assert length == min(context_length, context_limit)
        assert 0 <= offset <= first
        assert last < offset + length <= context_length


def test_an_answer_of_just_the_limit_is_trained_on():
    config = data_config(8, answer_limit=3)
    features = features_of((8, (2, 4)), (8, (2, 5)))
    assert training_windows(features, config, seed=0).examples.tolist() == [0]


def test_the_place_of_a_window_is_any_that_holds_the_answer():
    config = data_config(4, answer_limit=2)
    features = features_of(*[(10, (5, 6))] * 200, *[(10, (0, 1))] * 9, (10, (9, 9)))
    offsets = training_windows(features, config, seed=1).offsets.tolist()
    places = Counter(offsets[:200])
    assert sorted(places) == [3, 4, 5]
    assert min(places.values()) > 40  # of 67 expected
    assert offsets[200:] == [0] * 9 + [6]


def test_the_place_of_a_window_follows_from_the_seed():
    config = data_config(8)
    features = features_of(*[(40, (20, 21))] * 20)
    offsets = [training_windows(features, config, s).offsets for s in (1, 1, 2)]
    assert offsets[0].tolist() == offsets[1].tolist()
    assert offsets[0].tolist() != offsets[2].tolist()


@given(st.lists(contexts(), max_size=6), st.integers(1, 12), st.integers(0, 9))
def test_impossible_examples_are_trained_on_where_the_model_can_say_so(
    texts, context_limit, seed
):
    config = data_config(context_limit, answer_limit=1, no_answer=True)
    features = features_of(*texts)
    windows = training_windows(features, config, seed)
    assert windows.examples.tolist() == [
        i
        for i, (_, answer) in enumerate(texts)
        if answer is None or answer[0] == answer[1]
    ]
    for i, offset, length in zip(
        windows.examples, windows.offsets, windows.lengths, strict=True
    ):
        context_length, answer = texts[i]
        assert length == min(context_length, context_limit)
        assert 0 <= offset <= context_length - length
        if answer:
            assert offset <= answer[0] < offset + length


def test_an_answer_that_was_not_found_is_not_trained_on_as_none():
    lost = Example("q", "Who?", "a b c", (Span("d", -1),))
    features = build_features([lost])
    windows = training_windows(features, data_config(4, no_answer=True), seed=0)
    assert len(windows) == 0


def test_the_window_of_an_impossible_example_is_anywhere():
    features = features_of(*[(10, None)] * 350)
    windows = training_windows(features, data_config(4, no_answer=True), seed=1)
    places = Counter(windows.offsets.tolist())
    assert sorted(places) == list(range(7))
    assert min(places.values()) > 20  # of 50 expected


# Reading.


@pytest.mark.parametrize("length", [1, 401, 999, 1000])
def test_nothing_up_to_a_thousand_tokens_is_cut(length):
    windows = reading_windows(features_of((length, None)), np.array([0]), LIMITS)
    assert windows.offsets.tolist() == [0]
    assert windows.lengths.tolist() == [length]


@pytest.mark.parametrize("length", [1001, 1749, 1750, 1751, 2000, 3210])
def test_a_longer_text_is_read_in_windows_that_overlap(length):
    features = features_of((3, None), (length, None))
    windows = reading_windows(features, np.array([0, 1]), LIMITS)
    assert windows.examples.tolist() == [0] + [1] * (len(windows) - 1)
    ends = windows.offsets + windows.lengths
    assert windows.offsets[1] == 0
    assert ends[-1] == length
    assert (windows.lengths[1:-1] == LIMITS.window).all()
    assert (np.diff(windows.offsets[1:]) == LIMITS.stride).all()
    assert (ends[1:-1] > windows.offsets[2:]).all()
    # Else the window before it would have been the last.
    assert windows.lengths[-1] > LIMITS.window - LIMITS.stride


def test_only_the_chosen_examples_are_read_in_their_order():
    features = features_of((3, None), (4, None), (5, None))
    windows = reading_windows(features, np.array([2, 0]), LIMITS)
    assert windows.examples.tolist() == [2, 0]
    assert windows.lengths.tolist() == [5, 3]
