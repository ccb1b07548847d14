"""Tests of qanet.augmentation.augment."""

import sys
from collections import Counter

import pytest

from qanet.augmentation.augment import augment, gather
from qanet.augmentation.paraphrase import COUNTS, Paraphrase, Settings, passages
from qanet.datasets.squad import Example, Span
from qanet.errors import UserError

TEXTS = ["Bo has a big house. It is red.", "It is red. Zoë has 3 cats."]


@pytest.fixture
def read():
    return passages(
        [
            Example("1", "Who?", TEXTS[0], (Span("Bo", 0),)),
            Example("2", "How large?", TEXTS[0], (Span("big", 9),)),
            Example("3", "Whose?", TEXTS[1], (Span("Zoë", 11),)),
        ]
    )


class Words:
    """Translates word by word, with as many candidates as it is asked for."""

    batch_size = 2

    def __init__(self, name, words):
        self.name = name
        self.words = words
        self.batches = []

    def translate(self, sentences, count):
        self.batches.append(list(sentences))
        return [
            [
                " ".join(self.words.get(word, word) for word in sentence.split())
                + "," * i
                for i in range(count)
            ]
            for sentence in sentences
        ]


def test_there_and_back(read):
    forward = Words("there", {"big": "gros", "house.": "maison."})
    backward = Words("back", {"gros": "large", "maison.": "home."})
    result = augment(read, forward, backward, Settings(candidates=1))
    assert [example.context for example in result.examples] == [
        "Bo has a large home. It is red.",
        "It is red. Zoë has 3 cats.",
    ]
    assert [example.id for example in result.examples] == ["1", "3"]
    assert result.examples[1] == read[1].examples[0]
    assert result.counts == dict.fromkeys(COUNTS, 0) | {
        "contexts": 2,
        "sentences": 4,
        "sentences_unchanged": 3,
        "questions": 3,
        "answers_exact": 2,
        "answers_dropped": 1,
    }
    # Two of five words in one of four sentences.
    assert result.edit_distance == pytest.approx(2 / 5 / 4)
    assert result.kept_share == result.exact_share == pytest.approx(2 / 3)


def test_each_different_sentence_is_translated_once_in_batches(read):
    forward, backward = Words("there", {}), Words("back", {})
    augment(read, forward, backward, Settings(candidates=1))
    expected = [["Bo has a big house.", "It is red."], ["Zoë has 3 cats."]]
    assert forward.batches == backward.batches == expected


def test_distances_are_added_without_rounding():
    tenth = Paraphrase(distance=0.1, counts=Counter(sentences=1))
    # One after the other they come to 0.9999999999999999.
    assert gather([tenth] * 10, 1.0, ("a", "b")).edit_distance == 0.1


def test_candidates_are_drawn_under_the_seed(read):
    def contexts(seed):
        settings = Settings(candidates=5, seed=seed)
        result = augment(read, Words("there", {}), Words("back", {}), settings)
        return [example.context for example in result.examples]

    assert contexts(1) == contexts(1)
    drawn = [tuple(contexts(seed)) for seed in range(8)]
    assert len(set(drawn)) > 4
    # Each way adds 0 to 4 commas: drawn apart, their sum may be odd.
    assert {texts[0].count(",") % 2 for texts in drawn} == {0, 1}


def test_a_sentence_that_cannot_be_translated_stays(read):
    class Silent(Words):
        def translate(self, sentences, count):
            return [[] for _ in sentences]

    for forward, backward in (
        (Silent("there", {}), Words("back", {})),
        (Words("there", {}), Silent("back", {})),
    ):
        result = augment(read, forward, backward, Settings())
        assert [example.context for example in result.examples] == [
            TEXTS[0],
            TEXTS[0],
            TEXTS[1],
        ]
        assert result.counts["sentences_kept_empty"] == 4


def test_without_the_library_nothing_is_translated(read, monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    forward = Words("there", {})
    with pytest.raises(UserError, match="rapidfuzz"):
        augment(read, forward, Words("back", {}), Settings())
    assert forward.batches == []


def test_speed_is_in_sentences():
    one = Paraphrase(counts=Counter(sentences=1))
    assert gather([one] * 10, 2.0, ("a", "b")).sentences_per_second == 5.0
    assert gather([], 2.0, ("a", "b")).edit_distance == 0.0
