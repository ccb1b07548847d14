"""Tests of qanet.layers.attention_sum."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from qanet.layers.attention_sum import AttentionSum
from qanet.layers.numerics import MASKED_LOGIT

# Row and characters of each word. Unknown ones share a row, "Bank" and "bank" too.
WORDS = {"the": (2, [1, 2]), "Bank": (3, [4, 5]), "bank": (3, [6, 5]), "?": (1, [7, 0])}
WORDS |= {"!": (1, [8, 0]), "": (0, [0, 0])}

LENGTH = 9


def numbered(text):
    words = np.array([[WORDS[word][0] for word in text]], "int32")
    return words, np.array([[WORDS[word][1] for word in text]], "int32")


def test_the_places_of_a_word_add_up_at_the_first():
    text = ["the", "bank", "?", "the", "!", "Bank", "the", ""]
    shares = np.array([0.1, 0.2, 0.05, 0.25, 0.1, 0.1, 0.2, 0.0])
    logits = np.where(shares > 0, np.log(np.maximum(shares, 1e-9)), MASKED_LOGIT)
    output = ops.convert_to_numpy(
        AttentionSum()(logits[None].astype("float32"), *numbered(text))
    )
    expected = [0.55, 0.2, 0.05, 0, 0.1, 0.1, 0, 0]
    np.testing.assert_allclose(np.exp(output[0]), expected, atol=1e-6)
    # A word's second place is no answer, and no padding either.
    assert output[0, 7] == MASKED_LOGIT
    assert MASKED_LOGIT / 2 < output[0, 3] < -1000


def test_words_of_which_nothing_is_known_are_not_one_word():
    # Both without a row, with one character that is unknown; the third has a row.
    words = np.array([[1, 1, 2, 2]], "int32")
    characters = np.array([[[1, 0], [1, 0], [1, 0], [1, 0]]], "int32")
    logits = np.log(np.array([[0.4, 0.3, 0.1, 0.2]], "float32"))
    output = ops.convert_to_numpy(AttentionSum()(logits, words, characters))
    np.testing.assert_allclose(np.exp(output[0]), [0.4, 0.3, 0.3, 0], atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(sorted(WORDS)[1:]), min_size=1, max_size=LENGTH))
def test_the_softmax_is_the_distribution_over_words(text):
    shares = np.random.default_rng(1).dirichlet(np.ones(len(text)))
    logits = np.full((1, LENGTH), MASKED_LOGIT, "float32")
    logits[0, : len(text)] = np.log(shares)
    # Of one length, so that it is compiled once.
    padded = text + [""] * (LENGTH - len(text))
    output = ops.convert_to_numpy(AttentionSum()(logits, *numbered(padded)))[0]
    expected = Counter()
    for word, share in zip(text, shares, strict=True):
        expected[word] += share
    assert np.exp(output).sum() == pytest.approx(1, abs=1e-4)
    for word, share in expected.items():
        assert np.exp(output[text.index(word)]) == pytest.approx(share, abs=1e-4)
