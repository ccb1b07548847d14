"""Tests of qanet.layers.text_match."""

import functools
import math

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from qanet.layers.spelling import Spelling
from qanet.layers.text_match import TextMatch

# Padding, unknown, then these; upper case has lower case where both are known.
ALPHABET = ["", "?", *"aAbBcCdD"]
LOWERCASE = (0, 1, 2, 2, 4, 4, 6, 6, 8, 8)
SIZE = 7

# Few letters, so that words meet; "?" stands for characters that are not known.
WORDS = st.text("aAbBc?", max_size=SIZE)
KNOWN = ["a", "A", "abc", "Abcab", "b?"]
LENGTH = 6
TEXTS = st.lists(st.sampled_from(KNOWN) | WORDS, max_size=LENGTH)


def numbers(words, length):
    """Rows and spellings of a padded text."""
    rows = np.zeros((1, length), "int32")
    characters = np.zeros((1, length, SIZE), "int32")
    for i, word in enumerate(words):
        rows[0, i] = KNOWN.index(word) + 2 if word in KNOWN else 1
        spelling = [ALPHABET.index(character) for character in word]
        characters[0, i, : len(spelling)] = spelling
    return rows, characters


def expected(words, others):
    """From the words themselves."""

    def same(one, other, form=lambda word: word):
        legible = "?" not in form(one) or (one == other and one in KNOWN)
        return legible and form(one) == form(other)

    def stem(word):
        return word.lower()[:5]

    result = []
    for word in words:
        count = sum(same(word, other, str.lower) for other in words)
        result.append(
            [
                any(same(word, other) for other in others),
                any(same(word, other, str.lower) for other in others),
                any(same(word, other, stem) for other in others),
                math.log(max(count, 1)),
            ]
        )
    return np.array(result, "float32").reshape(-1, TextMatch.FEATURES)


def spellings(words, length=LENGTH, lowercase=LOWERCASE):
    return Spelling(lowercase)(*numbers(words, length))


@functools.cache
def compiled():
    """The layers as one program, since hypothesis calls them often."""
    texts = [
        keras.Input(shape, dtype="int32") for shape in [(LENGTH,), (LENGTH, SIZE)] * 2
    ]
    spelling = Spelling(LOWERCASE)
    match = TextMatch()(spelling(*texts[:2]), spelling(*texts[2:]))
    return keras.Model(texts, match).predict_on_batch


def features(words, others):
    """All padded to one length, so that there is one program."""
    return compiled()([*numbers(words, LENGTH), *numbers(others, LENGTH)])[0]


@settings(max_examples=200, deadline=None)
@given(TEXTS, TEXTS)
def test_against_strings(words, others):
    actual = features(words, others)

    assert actual.shape == (LENGTH, TextMatch.FEATURES)
    np.testing.assert_allclose(actual[: len(words)], expected(words, others), atol=1e-6)
    assert not actual[len(words) :].any()


@pytest.mark.parametrize(
    ("word", "other", "matches"),
    [
        ("abcab", "abcab", [1, 1, 1]),
        ("Abcab", "abcab", [0, 1, 1]),
        ("abcabcc", "Abcabb", [0, 0, 1]),
        ("abc", "abcab", [0, 0, 0]),
        # Neither is in the vocabulary, and what they are is not known.
        ("c?", "c?", [0, 0, 0]),
        # This one is: the row tells that they are the same.
        ("b?", "b?", [1, 1, 1]),
    ],
)
def test_matches(word, other, matches):
    assert features([word], [other])[0, :3].tolist() == matches


def test_terms_are_counted_in_their_own_text():
    actual = features(["a", "b", "A", "a", "c?", "c?"], ["c"])[:6, 3]
    expected = [math.log(3), 0, math.log(3), math.log(3), 0, 0]
    np.testing.assert_allclose(actual, expected, atol=1e-6)


def test_without_cases_letters_are_compared_as_they_are():
    one, other = spellings(["abcab"], 1, ()), spellings(["Abcab"], 1, ())
    assert not ops.convert_to_numpy(TextMatch()(one, other)).any()


def test_round_trip(check_round_trip):
    check_round_trip(TextMatch(), spellings(["a"]), spellings(["a", "abc"]))


def test_in_half_precision(mixed_bfloat16):
    output = TextMatch()(spellings(["a", "a"], 2), spellings(["a"], 2))
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    output = ops.convert_to_numpy(ops.cast(output, "float32"))
    assert output[0, 0, :3].tolist() == [1, 1, 1]
