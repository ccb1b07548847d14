"""Tests of qanet.augmentation.answers."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qanet.augmentation.answers import (
    MATCHERS,
    bigram_similarity,
    find_by_bigrams,
    find_by_edges,
    find_exact,
    require_matchers,
)
from qanet.errors import UserError


def found(find, answer, text, position=0.5):
    match = find(answer, text, position)
    return None if match is None else text[match.start : match.end]


def test_exact_answers_are_whole_tokens():
    assert found(find_exact, "art", "A party of art.") == "art"
    assert find_exact("art", "A party of artists.", 0.5) is None
    assert found(find_exact, "$5", "It costs $5, he said.") == "$5"
    assert find_exact("Rome", "He lives in rome.", 0.5) is None


@pytest.mark.parametrize("find", [find_exact, find_by_edges])
@pytest.mark.parametrize(
    ("answer", "text", "start"),
    [
        ("10", "For 10,000 dollars he sold 10 horses.", 27),
        ("10", "He paid 3.10 for 7:10, then 10.", 28),
        ("10,000", "For 10,000 dollars he sold 10 horses.", 4),
        ("3.5 metres", "Of 13.5 metres or 3.5 metres.", 18),
    ],
)
def test_a_number_is_not_found_within_another(find, answer, text, start):
    for position in (0.0, 0.3, 1.0):
        match = find(answer, text, position)
        assert (match.start, match.end) == (start, start + len(answer))


def test_a_number_within_another_is_no_answer():
    text = "He paid 10,000 dollars."
    assert find_exact("10", text, 0.5) is None
    assert find_by_bigrams("10", text, 0.5) is None
    # The whole number is a little like it.
    match = find_by_edges("10", text, 0.5)
    assert text[match.start : match.end] == "10,000"
    assert match.score < 0.75


def test_of_many_equal_words_the_nearest_is_taken():
    match = find_by_edges("cats", "cat dog " * 12, 0.0)
    assert match.start == 0


@pytest.mark.parametrize(("position", "start"), [(0.0, 0), (0.4, 8), (1.0, 16)])
def test_the_nearest_of_several_places_is_taken(position, start):
    match = find_exact("cat", "cat dog cat dog cat dog", position)
    assert (match.start, match.end, match.score) == (start, start + 3, 1.0)


@pytest.mark.parametrize(
    ("a", "b", "similarity"),
    [
        # Pairs by hand: ni ig gh ht and na ac ch ht have one of eight in common.
        ("night", "nacht", 2 * 1 / 8),
        ("night", "night", 1.0),
        # ab ba and ab bc: one of four.
        ("aba", "abc", 0.5),
        ("aaa", "aa", 2 * 1 / 3),
        ("abc", "xyz", 0.0),
        ("a", "a", 1.0),
        ("a", "ab", 0.0),
    ],
)
def test_bigram_similarity(a, b, similarity):
    assert bigram_similarity(a, b) == pytest.approx(similarity)
    assert bigram_similarity(b, a) == pytest.approx(similarity)


def test_bigrams_bound_the_answer_by_its_edges():
    text = "He worked in the Society of Geography of Paris, then."
    assert found(find_by_bigrams, "Geographical Society of Paris", text) == (
        "Geography of Paris"
    )
    # Its last word comes before its first.
    assert find_by_bigrams("Paris Society", "The Society of Paris", 0.5) is None
    # No pair of letters in common.
    assert find_by_bigrams("quiz", "The tower fell.", 0.5) is None


def test_bigrams_score_is_the_mean_of_both_edges():
    match = find_by_bigrams("night watch", "By nacht the watch slept", 0.3)
    assert match.score == pytest.approx((2 / 8 + 1) / 2)
    assert (match.start, match.end) == (3, 18)


def test_bigrams_take_the_nearest_of_equals():
    text = "red cat, red cat, red cat"
    match = find_by_bigrams("Cat", text, 1.0)
    assert match.start == text.rindex("cat")


@pytest.mark.parametrize(
    ("answer", "text", "expected"),
    [
        # Other words with the same stems.
        ("optical fibers", "It sends light by optical fibres today.", "optical fibres"),
        # Stop words at the edge do not bind, but stay where they are the same.
        ("about 34,000 miles", "It has almost 34,000 miles of road.", "34,000 miles"),
        (
            "in the Rhine valley",
            "They live in the Rhine valleys.",
            "in the Rhine valleys",
        ),
        # Not the ends of other words.
        ("his army", "Then this army went home.", "army"),
        ("army at", "They saw the army attack.", "army"),
        # So do symbols.
        ("to 40%", "It fell to about 40% of it", "40%"),
        # A word may come in between.
        ("Marie Curie", "She is Marie S. Curie, a chemist.", "Marie S. Curie"),
        # Stop words alone are an answer too.
        ("The Who", "Then the Who played.", "the Who"),
    ],
)
def test_edges(answer, text, expected):
    assert found(find_by_edges, answer, text) == expected


def test_edges_score_likeness():
    text = "It sends light by optical fibres today."
    alike = find_by_edges("optical fibers", text, 0.5).score
    half = find_by_edges("optical cables", text, 0.5).score
    nothing = find_by_edges("Napoleon Bonaparte", text, 0.5).score
    assert 1.0 > alike > half > nothing >= 0.0
    assert find_by_edges("Optical Fibres", text, 0.5).score == pytest.approx(1.0)


def test_edges_score_is_the_mean_of_both_edges_and_the_whole():
    match = find_by_edges("Marie Curie", "She is Marie S. Curie, a chemist.", 0.5)
    # 11 letters and blanks of 11 and of 14 are common.
    assert match.score == pytest.approx((1 + 1 + 2 * 11 / (11 + 14)) / 3)


def test_stop_words_are_no_edges():
    assert found(find_by_edges, "fort", "A fence for a farm, or a castle.") != "for"


def test_edges_do_not_join_what_is_far_apart():
    text = "The Society met the king and queen, and all of their friends, in Paris."
    assert found(find_by_edges, "Society Paris", text) != text[4:-1]


@pytest.mark.parametrize("name", MATCHERS)
@given(answer=st.text(min_size=1), text=st.text(min_size=1), position=st.floats(0, 1))
def test_matches_are_spans_of_the_text(name, answer, text, position):
    match = MATCHERS[name](answer, text, position)
    if match is not None:
        assert 0 <= match.start < match.end <= len(text)
        assert 0.0 <= match.score <= 1.0


@given(
    words=st.lists(
        st.sampled_from("red cat in the house".split()), min_size=1, max_size=6
    )
)
def test_what_is_there_is_found_with_score_one(words):
    text = f"So {' '.join(words)} fell."
    for find in (find_exact, find_by_edges):
        match = find(" ".join(words), text, 0.2)
        assert match.score == pytest.approx(1.0)


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    with pytest.raises(UserError, match=r"pip install 'qanet\[augment\]'"):
        require_matchers()


@pytest.mark.parametrize(("between", "joined"), [("Bo Xu", True), ("Bo Xu Ohl", False)])
def test_two_words_may_come_in_between(between, joined):
    text = f"She is Marie {between} Curie, a chemist."
    whole = f"Marie {between} Curie"
    assert (found(find_by_edges, "Marie Curie", text) == whole) == joined


def test_places_that_overlap_are_all_considered():
    match = find_exact("very very", "very very very good", 0.3)
    assert match.start == 5


def test_bigrams_need_both_edges():
    assert find_by_bigrams("tower quiz", "The tower fell.", 0.5) is None
    assert find_by_bigrams("quiz tower", "The tower fell.", 0.5) is None


@pytest.mark.parametrize(("position", "start"), [(0.0, 0), (0.4, 8), (1.0, 16)])
def test_edges_take_the_nearest_of_equals(position, start):
    assert find_by_edges("cats", "cat dog cat dog cat dog", position).start == start
