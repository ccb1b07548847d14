"""Tests of qanet.augmentation.paraphrase."""

import os
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qanet.augmentation import paraphrase
from qanet.augmentation.paraphrase import (
    COUNTS,
    Passage,
    Settings,
    _numbers,
    choose,
    passages,
    rebuild,
)
from qanet.datasets.squad import Example, Span

CONTEXT = " Zoë's house was built in 1,842.\n\nShe sold the red house to Bo. "
SENTENCES = ["Zoë's house was built in 1,842.", "She sold the red house to Bo."]


def example(number, answer, context=CONTEXT, **fields):
    answers = (Span(answer, context.index(answer)),) if answer else ()
    return Example(str(number), f"Question {number}?", context, answers, **fields)


def one_passage(*answers):
    (passage,) = passages(example(i, answer) for i, answer in enumerate(answers))
    return passage


def test_passages_are_the_contexts_in_order():
    other = "Another text."
    examples = [
        example(1, "Bo"),
        example(2, "text", other),
        example(3, "1,842"),
        example(4, "Bo", title="B"),
    ]
    read = passages(examples)
    assert [passage.context for passage in read] == [CONTEXT, other, CONTEXT]
    assert [[e.id for e in passage.examples] for passage in read] == [
        ["1", "3"],
        ["2"],
        ["4"],
    ]
    assert read[0].sentences == SENTENCES


def test_sentences_are_on_one_line():
    (passage,) = passages([example(1, "Bo", "It was\nBo's  \t house.")])
    assert passage.sentences == ["It was Bo's house."]


def test_the_passage_is_told_in_new_words_around_its_old_spaces():
    passage = one_passage("Bo")
    new = ["In 1842, Zoë's house was built.", "She sold Bo the crimson house."]
    result = rebuild(passage, new, Settings())
    (moved,) = result.examples
    assert moved.context == f" {new[0]}\n\n{new[1]} "
    assert (moved.id, moved.question) == ("0", "Question 0?")
    assert moved.answers == (Span("Bo", moved.context.index("Bo")),)
    assert result.counts == Counter(
        contexts=1, sentences=2, sentences_unchanged=0, questions=1, answers_exact=1
    )


def test_answers_are_looked_for_in_their_own_sentence():
    passage = one_passage("house", "the red house")
    new = ["It was built in 1842.", "The house red she sold to Bo."]
    result = rebuild(passage, new, Settings(threshold=0.9))
    # "house" first stood in the first sentence, which has lost it.
    assert [moved.id for moved in result.examples] == []
    assert [move.before for move in result.moved] == SENTENCES
    assert [move.after for move in result.moved] == new
    assert result.counts["answers_dropped"] == 2


@pytest.mark.parametrize("answer", ["\n\nShe sold", "Bo. "])
def test_an_answer_with_blanks_around_it_is_found_without_them(answer):
    passage = one_passage(answer)
    result = rebuild(passage, SENTENCES, Settings())
    (move,) = result.moved
    assert (move.exact, move.score) == (True, 1.0)
    assert move.old.text == answer.strip()
    assert move.before[move.old.start :].startswith(answer.strip())


def test_an_answer_over_two_sentences():
    answer = "in 1,842.\n\nShe sold"
    passage = one_passage(answer)
    result = rebuild(passage, SENTENCES, Settings())
    assert result.examples == list(passage.examples)
    assert result.counts["answers_exact"] == 1
    assert result.counts["sentences_unchanged"] == 2
    assert result.distance == 0.0
    (move,) = result.moved
    assert move.before == move.after == CONTEXT.strip()
    assert move.old == Span(answer, CONTEXT.strip().index(answer))


@pytest.mark.parametrize(("threshold", "outcome"), [(0.9, "close"), (0.99, "dropped")])
def test_the_threshold_decides_on_answers_that_changed(threshold, outcome):
    passage = one_passage("the red house")
    new = [SENTENCES[0], "She sold the red houses to Bo."]
    result = rebuild(passage, new, Settings(threshold=threshold))
    assert result.counts[f"answers_{outcome}"] == 1
    (move,) = result.moved
    assert 0.9 < move.score < 0.99
    if outcome == "close":
        (moved,) = result.examples
        (answer,) = moved.answers
        assert answer.text == "the red houses"
        assert moved.context.startswith(answer.text, answer.start)
    else:
        assert result.examples == []
        assert move.new is None


def test_questions_keep_the_answers_that_are_found():
    answers = (Span("Bo", CONTEXT.index("Bo")), Span("1,842", CONTEXT.index("1,842")))
    (passage,) = passages([Example("1", "?", CONTEXT, answers)])
    new = ["Zoë's house was built in 1842.", "She sold the house to Bo."]
    result = rebuild(passage, new, Settings(threshold=1.0))
    (moved,) = result.examples
    assert [answer.text for answer in moved.answers] == ["Bo"]
    assert result.counts["questions"] == result.counts["answers_exact"] == 1


def test_questions_without_an_answer_stay():
    impossible = example(1, "", impossible=True)
    lost = Example("2", "?", CONTEXT, (Span("nowhere", -1),))
    (passage,) = passages([impossible, lost])
    result = rebuild(
        passage, ["It was built in 1842.", "Bo has that house by now."], Settings()
    )
    (moved,) = result.examples
    assert moved.impossible
    assert moved.context == " It was built in 1842.\n\nBo has that house by now. "
    assert result.counts["answers_dropped"] == 1


@pytest.mark.parametrize(
    ("new", "problem"),
    [
        (None, "empty"),
        ("", "empty"),
        ("In 1842 Zoë.", "length"),
        ("Zoë's house, 1,842. " * 4, "length"),
        ("Zoë's house was built in 1,824.", "numbers"),
        ("Zoë's house was built then.", "numbers"),
        ("Zoë's house was built in 1.842,5.", "numbers"),
        ("Zoë's house was built in 18,42.", "numbers"),
        ("Zoë's дом was built in 1,842.", "script"),
    ],
)
def test_sentences_that_are_not_usable_stay_as_they_were(new, problem):
    passage = one_passage("house")
    result = rebuild(passage, [new, SENTENCES[1]], Settings())
    assert result.counts[f"sentences_kept_{problem}"] == 1
    assert result.examples == list(passage.examples)


@pytest.mark.parametrize(
    "new", ["Zoë's house was built in 1.842.", "In 1842, 2 men built a home for Zoë."]
)
def test_sentences_that_are_usable(new):
    result = rebuild(one_passage("Bo"), [new, SENTENCES[1]], Settings())
    assert not any(result.counts[name] for name in COUNTS if "kept" in name)
    assert new in result.examples[0].context


def test_decimals_are_no_thousands():
    assert _numbers("1,234,567 and 1.234") == {"1234567": 1, "1234": 1}
    assert _numbers("3,14 and 0.125") == {"3.14": 1, "0.125": 1}


def test_the_micro_sign_is_a_greek_letter():
    (passage,) = passages([Example("1", "?", "It is 5 \u00b5m wide.", ())])
    result = rebuild(passage, ["It has a width of 5 \u03bcm."], Settings())
    assert result.counts["sentences_kept_script"] == 0


def test_answers_in_sentences_that_stay_as_they_were_stay_where_they_were():
    # No whole tokens, and elsewhere there are better ones.
    context = "The Eightfold path has eight parts, and 8.5 or 5 percent."
    answers = ("Eight", "5")
    (passage,) = passages(
        [
            Example(text, "?", context, (Span(text, context.index(text)),))
            for text in answers
        ]
    )
    result = rebuild(passage, [None], Settings())
    assert [moved.answers for moved in result.examples] == [
        original.answers for original in passage.examples
    ]


def test_distance_is_in_words():
    # By hand: one of six words is other, and one of six is gone.
    new = ["Zoë's home was built in 1,842.", "She sold the house to Bo."]
    result = rebuild(one_passage("Bo"), new, Settings())
    assert result.distance == pytest.approx(1 / 6 + 1 / 7)


@given(
    st.lists(
        st.none() | st.text(alphabet="Zoë shoue1842.,\n ", max_size=50),
        min_size=2,
        max_size=2,
    ),
    st.sampled_from(["edges", "bigrams"]),
    st.floats(0, 1),
)
def test_every_answer_stands_where_it_says(new, matching, threshold):
    new = [text and " ".join(text.split()) for text in new]
    passage = one_passage("house", "the red house to Bo", "1,842.\n\nShe")
    result = rebuild(passage, new, Settings(matching=matching, threshold=threshold))
    for moved in result.examples:
        for answer in moved.answers:
            assert answer.text
            assert moved.context.startswith(answer.text, answer.start)
    outcomes = ("answers_exact", "answers_close", "answers_dropped")
    assert sum(result.counts[name] for name in outcomes) == 3
    assert len(result.examples) == 3 - result.counts["answers_dropped"]


def drawn(candidates, settings, way="forward", count=400):
    return [choose(candidates, CONTEXT, i, settings, way) for i in range(count)]


def test_each_candidate_is_as_likely_as_the_others():
    counts = Counter(drawn("abcd", Settings()))
    assert set(counts) == set("abcd")
    # Five standard deviations of a binomial draw.
    assert all(abs(count - 100) < 5 * 75**0.5 for count in counts.values())


def test_the_draw_depends_on_seed_direction_and_place_alone():
    first = drawn("abcd", Settings())
    assert drawn("abcd", Settings(threshold=0.1)) == first
    assert drawn("abcd", Settings(seed=43)) != first
    assert drawn("abcd", Settings(), "backward") != first


@pytest.fixture(params=[False, True], ids=["short", "long"])
def longest(request, monkeypatch):
    """The length up to which a context stands for itself; CONTEXT may be longer."""
    length = len(CONTEXT) - request.param
    monkeypatch.setattr(paraphrase, "LONG", length)
    paraphrase._key.cache_clear()
    yield length
    paraphrase._key.cache_clear()


def test_contexts_with_one_beginning_are_drawn_apart(longest):
    draws = [
        [choose("abcd", CONTEXT + end, i, Settings(), "back") for i in range(20)]
        for end in ("", "x", "y")
    ]
    assert len(set(map(tuple, draws))) == 3


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_other_processes_draw_the_same(hash_seed, longest):
    code = (
        "from qanet.augmentation import paraphrase\n"
        f"paraphrase.LONG = {longest}\n"
        "from qanet.augmentation.paraphrase import Settings, choose\n"
        f"for i in range(20): print(choose('abcd', {CONTEXT!r}, i, Settings(), 'back'))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.split() == drawn("abcd", Settings(), "back", count=20)


def test_nothing_is_drawn_from_nothing():
    assert choose([], CONTEXT, 0, Settings(), "forward") is None


@pytest.mark.parametrize("length", [10, 40])
def test_a_paraphrase_may_be_half_or_twice_as_long(length):
    asked = Example("1", "?", "It was once a towns.", (), "", True)
    passage = Passage("It was once a towns.", (asked,), ((0, 20),))
    result = rebuild(passage, ["a" * length], Settings())
    assert result.counts["sentences_kept_length"] == 0
    result = rebuild(passage, ["a" * (9 if length == 10 else 41)], Settings())
    assert result.counts["sentences_kept_length"] == 1


def test_a_paraphrase_may_do_without_a_script():
    asked = Example("1", "?", "It is called Москва there.", (), "", True)
    (passage,) = passages([asked])
    result = rebuild(passage, ["Its name is Moscow there."], Settings())
    assert result.counts["sentences_kept_script"] == 0
    assert result.examples[0].context == "Its name is Moscow there."


def test_an_answer_that_was_not_found_is_not_looked_for():
    lost = Example("1", "?", CONTEXT, (Span("x", -1), Span("Bo", CONTEXT.index("Bo"))))
    (passage,) = passages([lost])
    result = rebuild(passage, SENTENCES, Settings())
    assert [move.old.text for move in result.moved] == ["Bo"]


def test_one_answer_word_for_word_makes_a_question_exact():
    answers = ("Bo", "the red house")
    spans = tuple(Span(text, CONTEXT.index(text)) for text in answers)
    (passage,) = passages([Example("1", "?", CONTEXT, spans)])
    new = [SENTENCES[0], "She sold the red houses to Bo."]
    result = rebuild(passage, new, Settings())
    assert len(result.examples[0].answers) == 2
    assert result.counts["answers_exact"] == 1
    assert result.counts["answers_close"] == 0


def test_of_several_places_the_one_nearest_to_the_old_is_taken():
    context = "Bo saw the cat, and the dog saw Bo."
    (passage,) = passages([Example("1", "?", context, (Span("Bo", 32),))])
    result = rebuild(passage, ["Bo sees the cat, and the dog sees Bo."], Settings())
    (answer,) = result.examples[0].answers
    assert answer.start == 34


@pytest.mark.parametrize(("text", "start"), [("one.", 0), ("two.", 4)])
def test_sentences_that_an_answer_only_touches_are_not_looked_at(text, start):
    asked = Example("1", "?", "one.two.", (Span(text, start),))
    passage = Passage("one.two.", (asked,), ((0, 4), (4, 8)))
    (move,) = rebuild(passage, ["one.", "two."], Settings()).moved
    assert move.before == text


def test_nothing_alike_has_no_score():
    passage = one_passage("Zoë")
    new = ["It was built in 1842.", SENTENCES[1]]
    (move,) = rebuild(passage, new, Settings(matching="bigrams")).moved
    assert (move.new, move.score, move.exact) == (None, 0.0, False)


def test_the_first_sentences_of_contexts_are_drawn_apart():
    drawn = {choose("abcd", f"Text {i}.", 0, Settings(), "forward") for i in range(40)}
    assert drawn == set("abcd")
