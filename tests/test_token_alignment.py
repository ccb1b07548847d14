"""Tests of qanet.token_alignment."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qanet.token_alignment import align


@st.composite
def splits(draw):
    """Two ways to split a text of some characters; characters may be left out."""

    def spans(length):
        bounds = draw(st.lists(st.integers(0, length), max_size=8, unique=True))
        bounds.sort()
        pairs = list(itertools.pairwise(bounds))
        return np.array([p for p in pairs if draw(st.booleans())], "int32")

    length = draw(st.integers(1, 20))
    return spans(length).reshape(-1, 2), spans(length).reshape(-1, 2)


def distributions(random, count):
    values = random.random((2, 1 + count))
    return values / values.sum(axis=1, keepdims=True)


def token_by_rule(spans, place, is_start):
    """The token with the character, or the next for a start, the last for an end."""
    holding = [i for i, (begin, end) in enumerate(spans) if begin <= place < end]
    later = [i for i, (begin, _) in enumerate(spans) if begin > place]
    earlier = [i for i, (_, end) in enumerate(spans) if end <= place]
    if holding:
        return holding[0]
    if is_start:
        return later[0] if later else len(spans) - 1
    return earlier[-1] if earlier else 0


@given(splits(), st.integers(0, 2**32 - 1))
def test_each_probability_goes_to_the_token_at_its_place(both, seed):
    spans, to = both
    found = distributions(np.random.default_rng(seed), len(spans))
    expected = np.zeros((2, 1 + len(to)))
    expected[:, 0] = found[:, 0]
    if len(to):
        for i, (begin, end) in enumerate(spans):
            expected[0, 1 + token_by_rule(to, begin, True)] += found[0, 1 + i]
            expected[1, 1 + token_by_rule(to, end - 1, False)] += found[1, 1 + i]

    actual = align(found, spans, to)

    np.testing.assert_allclose(actual, expected)
    if len(to):
        np.testing.assert_allclose(actual.sum(axis=1), 1.0)


@given(splits(), st.integers(0, 2**32 - 1))
def test_on_the_same_tokens_nothing_changes(both, seed):
    spans, _ = both
    found = distributions(np.random.default_rng(seed), len(spans))
    np.testing.assert_array_equal(align(found, spans, spans), found)


def test_an_answer_of_several_pieces_is_that_of_their_words():
    # "in Saint-Malo." as in | sa ##int | - | mal ##o | . and as in | Saint-Malo | .
    pieces = np.array([(0, 2), (3, 5), (5, 8), (8, 9), (9, 12), (12, 13), (13, 14)])
    words = np.array([(0, 2), (3, 13), (13, 14)])
    found = np.zeros((2, 8))
    found[0, [1, 2, 5]] = 0.1, 0.7, 0.2
    found[1, [6, 7]] = 0.9, 0.1
    np.testing.assert_allclose(
        align(found, pieces, words), [[0, 0.1, 0.9, 0], [0, 0, 0.9, 0.1]]
    )
    # And back: to the first piece and to the last.
    back = align(align(found, pieces, words), words, pieces)
    assert np.flatnonzero(back[0]).tolist() == [1, 2]
    assert np.flatnonzero(back[1]).tolist() == [6, 7]
