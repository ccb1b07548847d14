"""Tests of qanet.pretraining.samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qanet.pretraining.samples import draw_sample, log_expected_counts


@given(st.integers(1, 300), st.data(), st.integers(0, 5))
def test_samples_differ_from_one_another_and_follow_from_the_seed(words, data, seed):
    count = data.draw(st.integers(1, words))
    sample, draws = draw_sample(words, count, np.random.default_rng(seed))
    assert sample.dtype == np.int32
    assert len(set(sample.tolist())) == len(sample) == count
    assert sample.min() >= 0
    assert sample.max() < words
    assert draws >= count
    again, _ = draw_sample(words, count, np.random.default_rng(seed))
    np.testing.assert_array_equal(again, sample)


def test_words_are_drawn_by_their_rank():
    words, random = 50, np.random.default_rng(0)
    drawn = [draw_sample(words, 1, random)[0][0] for _ in range(20_000)]
    shares = np.bincount(drawn, minlength=words) / len(drawn)
    rank = np.arange(words)
    p = np.log((rank + 2) / (rank + 1)) / np.log(words + 1)
    assert p.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(shares, p, atol=0.01)
    # One draw is expected to give a word as often as its probability says.
    expected = np.exp(log_expected_counts(rank, words, 1))
    np.testing.assert_allclose(expected, p, rtol=1e-5)


def test_expected_counts_are_how_often_samples_have_a_word():
    words, count, random = 40, 10, np.random.default_rng(0)
    had, expected = np.zeros(words), np.zeros(words)
    for _ in range(3000):
        sample, draws = draw_sample(words, count, random)
        had[sample] += 1 / 3000
        expected += np.exp(log_expected_counts(np.arange(words), words, draws)) / 3000
    # They are an approximation: that the number of draws depends on what is drawn is
    # left out.
    np.testing.assert_allclose(had, expected, atol=0.03)


def test_all_words_are_expected_once():
    sample, draws = draw_sample(7, 7, np.random.default_rng(0))
    assert sorted(sample.tolist()) == list(range(7))
    logs = log_expected_counts(sample, 7, draws)
    assert logs.dtype == np.float32
    assert logs.tolist() == [0.0] * 7
