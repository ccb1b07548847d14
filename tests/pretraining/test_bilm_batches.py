"""Tests of qanet.pretraining.bilm_batches."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qanet.datasets.plans import NO_ITEM, PlannedBatch
from qanet.errors import UserError
from qanet.models.character_ids import character_ids
from qanet.pretraining.bilm_batches import SentenceBatches
from qanet.pretraining.config import BiLMLearningConfig
from qanet.pretraining.samples import log_expected_counts
from qanet.pretraining.word_vocabulary import WordVocabulary

VOCABULARY = WordVocabulary("<S> </S> <UNK> the cat sat".split())


def made(sentences, vocabulary=VOCABULARY, buckets=(3, 6), tokens=12, **settings):
    settings = {"samples": 6, "seed": 0} | settings
    config = BiLMLearningConfig(buckets=buckets, batch_tokens=tokens, **settings)
    return SentenceBatches(sentences, vocabulary, config)


def test_a_batch_holds_characters_words_and_marks():
    batches = made([["the", "dog", "sat"], ["cat"]])
    batch = PlannedBatch(np.array([1, 0, NO_ITEM]), 4, 4)
    inputs, targets = batches.inputs(batch), batches.targets(batch)
    assert inputs["words"].tolist() == [
        [0, 4, 1, 0, 0, 0],
        [0, 3, 2, 5, 1, 0],
        [0, 0, 0, 0, 0, 0],
    ]
    assert targets["real"].tolist() == [[1, 1, 0, 0, 0], [1, 1, 1, 1, 0], [0] * 5]
    characters = inputs["characters"]
    assert characters.shape == (3, 4, 50)
    np.testing.assert_array_equal(characters[0, :1], character_ids(["cat"]))
    expected = character_ids(["the", "dog", "sat"])
    np.testing.assert_array_equal(characters[1, :3], expected)
    assert not characters[2].any()
    assert not characters[0, 1:].any()
    kinds = {name: array.dtype.name for name, array in (inputs | targets).items()}
    assert kinds == {
        "characters": "int32",
        "words": "int32",
        "log_counts": "float32",
        "sample": "int32",
        "sample_log_counts": "float32",
        "real": "float32",
    }
    assert all(len(array) == 3 for array in (inputs | targets).values())


WORDS = [f"w{i}" for i in range(100)]
LARGE = WordVocabulary(["<S>", "</S>", "<UNK>", *WORDS])


def test_a_sample_follows_from_the_batch_and_the_seed():
    sentences = [[WORDS[i]] * 2 for i in range(40)]
    batches = made(sentences, LARGE, samples=30)
    plan = batches.plan(8)
    samples = [batches.inputs(batch)["sample"] for batch in plan]
    # Of 4 sentences each: as many words of the 30 as can be shared evenly.
    assert {sample.shape for sample in samples} == {(4, 7)}
    assert all(len(set(sample.ravel())) == 28 for sample in samples)
    assert len({sample.tobytes() for sample in samples}) == 8
    again = made(sentences, LARGE, samples=30).inputs(plan[3])
    np.testing.assert_array_equal(again["sample"], samples[3])
    other = made(sentences, LARGE, samples=30, seed=1).inputs(plan[3])
    assert not np.array_equal(other["sample"], samples[3])


def test_the_counts_are_those_of_the_sample():
    batches = made([["w1", "w50"], ["w3"]], LARGE, samples=30)
    (batch,) = batches.reading()
    inputs = batches.inputs(batch)
    # How many draws it took follows from the count of one word; all others fit.
    count = np.exp(inputs["log_counts"][0, 0].astype("float64"))
    p = np.log(2) / np.log(len(LARGE) + 1)
    draws = round(np.log1p(-count) / np.log1p(-p))
    assert draws >= 28
    for words, counts in (("words", "log_counts"), ("sample", "sample_log_counts")):
        expected = log_expected_counts(inputs[words], len(LARGE), draws)
        np.testing.assert_allclose(inputs[counts], expected, rtol=0.01)


SENTENCES = st.lists(
    st.lists(st.sampled_from(["the", "cat", "dog", "Zoë"]), max_size=15), max_size=12
)


@given(SENTENCES)
def test_all_words_are_read_once(sentences):
    if not any(sentences):
        with pytest.raises(UserError, match="the text has no words"):
            made(sentences)
        return
    batches = made(sentences)
    read = Counter()
    for batch in batches.reading():
        inputs, real = batches.inputs(batch), batches.targets(batch)["real"]
        lengths = inputs["characters"].any(axis=2).sum(axis=1)
        for row, length in enumerate(lengths):
            # Where there is no sentence nothing counts.
            assert real[row].sum() == (length + 1 if length else 0)
            words = inputs["words"][row]
            if length:
                assert (words[0], words[length + 1]) == (0, 1)
            for place in range(length):
                characters = inputs["characters"][row, place]
                read[characters.tobytes(), words[place + 1]] += 1
    words = [word for sentence in sentences for word in sentence]
    pairs = zip(character_ids(words), VOCABULARY.numbers(words), strict=True)
    assert read == Counter((row.tobytes(), number) for row, number in pairs)
    assert batches.left_out == 0


def test_long_sentences_are_cut_where_the_longest_bucket_ends():
    batches = made([["the"] * 6 + ["cat"] * 2])
    lengths = [
        batches.targets(batch)["real"].sum(axis=1) for batch in batches.reading()
    ]
    assert sorted(np.concatenate(lengths).tolist()) == [0, 0, 0, 0, 3, 7]


def test_too_few_samples_for_a_batch():
    with pytest.raises(UserError, match=r"training\.samples=3: .* the 4 sentences"):
        made([["the"]], samples=3)
    # More samples than words are not drawn.
    with pytest.raises(UserError, match=r"^6 words that are predicted: .* 8 sentences"):
        made([["the"]], tokens=24, samples=9)
