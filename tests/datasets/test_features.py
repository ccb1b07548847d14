"""Tests of qanet.datasets.features."""

from dataclasses import fields, replace
from itertools import chain
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from qanet.datasets.features import (
    build_features,
    cached_features,
    from_arrays,
    join_features,
    to_arrays,
)
from qanet.datasets.squad import Example, Span
from qanet.files import pack_json
from qanet.text.tokenizer import token_spans, tokenize, words_of

# Letters, a mark, CJK, symbols, an invisible separator, half a surrogate pair.
TEXT = st.text("abé\u0301中。7 .-\n\u200b\ud83d😀", max_size=30)
CONTEXT = "The cat sat on 12km² of Zoë’s mat; the cat slept."


def question(*answers, context=CONTEXT, id="q", text="Who sat?"):
    spans = tuple(Span(answer, start) for answer, start in answers)
    return Example(id, text, context, spans, impossible=not spans)


def features_of(*answers, context=CONTEXT):
    return build_features([question(*answers, context=context)])


def answer_of(features, example=0):
    """The words of an example's gold answer."""
    context = features.context_of[example]
    begin = features.context_splits[context]
    start, end = features.starts[example], features.ends[example]
    numbers = features.context_words[begin + start : begin + end + 1]
    return [features.words[number] for number in numbers]


def assert_same(one, other):
    for field in fields(one):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype, field.name
        np.testing.assert_array_equal(left, right, field.name)


# Tokens.


@given(st.lists(st.tuples(TEXT, TEXT), max_size=5))
def test_tokens_and_spans_agree_with_the_text(texts):
    examples = [
        Example(str(i), question, context, ())
        for i, (question, context) in enumerate(texts)
    ]
    features = build_features(examples)
    assert len(features) == len(examples)
    assert features.words[0] == ""
    assert len(set(features.words)) == len(features.words)
    for i, example in enumerate(examples):
        spans = features.spans_of(i)
        assert [tuple(span) for span in spans] == token_spans(example.context)
        context = features.context_of[i]
        begin, end = features.context_splits[context : context + 2]
        words = [features.words[n] for n in features.context_words[begin:end]]
        assert words == [example.context[start:stop] for start, stop in spans]
        begin, end = features.question_splits[i : i + 2]
        words = [features.words[n] for n in features.question_words[begin:end]]
        assert words == tokenize(example.question)
        assert features.context_lengths[i] == len(spans)
        assert features.question_lengths[i] == len(words)


def test_a_context_is_stored_once_even_if_it_comes_back_later():
    one, other = "one two three", "four five"
    # Not the same object: equal text is enough.
    again = " ".join(["one", "two", "three"])
    examples = [
        question(("two", 4), context=one),
        question(("three", 8), context=one),
        question(("five", 5), context=other),
        question(("three", 8), context=again),
    ]
    features = build_features(examples)
    assert features.context_of.tolist() == [0, 0, 1, 0]
    assert features.context_splits.tolist() == [0, 3, 5]
    assert len(features.context_words) == len(features.context_spans) == 5
    answers = [answer_of(features, i) for i in range(4)]
    assert answers == [["two"], ["three"], ["five"], ["three"]]


def test_types():
    features = features_of(("cat", 4))
    names = {
        field.name: getattr(features, field.name).dtype
        for field in fields(features)
        if isinstance(getattr(features, field.name), np.ndarray)
    }
    others = dict.fromkeys(("context_splits", "question_splits"), "int64")
    others["impossible"] = "bool"
    assert names == {name: others.get(name, "int32") for name in names}
    assert features.context_spans.shape == (len(features.context_words), 2)


# Answers.


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (("cat", 4), ["cat"]),
        (("cat", 39), ["cat"]),
        (("The cat sat", 0), ["The", "cat", "sat"]),
        (("slept.", 43), ["slept", "."]),
        (("Zoë’s", 24), ["Zoë", "’", "s"]),
    ],
)
def test_an_answer_of_whole_tokens(answer, words):
    features = features_of(answer)
    assert answer_of(features) == words
    assert features.snapped == 0


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (("12", 15), ["12km²"]),  # the beginning of a token
        (("km", 17), ["12km²"]),  # its middle
        (("at on 1", 9), ["sat", "on", "12km²"]),
        (("on 12", 12), ["on", "12km²"]),
        (("at;", 31), ["mat", ";"]),
    ],
)
def test_an_answer_inside_a_token_is_widened_and_counted(answer, words):
    features = features_of(answer)
    assert answer_of(features) == words
    assert features.snapped == 1


def test_widened_answers_are_counted_over_all_examples():
    examples = [question(("12", 15)), question(("cat", 4)), question(("km²", 17))]
    assert build_features(examples).snapped == 2


@given(TEXT, st.data())
def test_the_answer_is_the_tokens_that_it_touches(context, data):
    start = data.draw(st.integers(0, len(context)))
    stop = data.draw(st.integers(start, len(context)))
    spans = token_spans(context)
    touched = [i for i, (b, e) in enumerate(spans) if b < stop and e > start]
    # An answer begins and ends with something to read.
    assume(touched)
    assume(spans[touched[0]][0] <= start < stop <= spans[touched[-1]][1])
    features = features_of((context[start:stop], start), context=context)
    assert features.starts.tolist() == [touched[0]]
    assert features.ends.tolist() == [touched[-1]]
    exact = (spans[touched[0]][0], spans[touched[-1]][1]) == (start, stop)
    assert features.snapped == (not exact)


@pytest.mark.parametrize(
    "answers",
    [
        [],
        [("a dog", -1)],
        [("a dog", -1), ("a cow", -1)],
    ],
)
def test_no_answer_in_the_context(answers):
    features = features_of(*answers)
    assert features.starts.tolist() == features.ends.tolist() == [-1]
    assert features.snapped == 0


def test_an_answer_without_a_token_is_none():
    features = features_of(("\u200b", 1), context="a\u200b b")
    assert features.starts.tolist() == features.ends.tolist() == [-1]


def test_the_first_answer_that_the_context_holds_counts():
    assert answer_of(features_of(("a dog", -1), ("sat", 8), ("cat", 4))) == ["sat"]
    answers = [("\u200b", 1), ("b", 3)]
    assert answer_of(features_of(*answers, context="a\u200b b")) == ["b"]


EXAMPLES = [
    question(("cat", 4), ("the cat", 35), id="q1"),
    question(("a dog", -1), ("km", 17), id="q2"),
    question(("two", 4), context="one two \ud83d", id="q3"),
]


# Several data sets.


@given(
    st.lists(
        st.lists(st.tuples(TEXT, TEXT, st.integers(0, 5)), max_size=4),
        min_size=1,
        max_size=3,
    )
)
def test_joined_features_are_those_of_all_examples(sets):
    """Contexts of different sets differ, or one would be stored once."""
    parts = [
        [
            Example(str(i), question, f"{n} {context}", (Span(context[at:], at + 2),))
            for i, (question, context, at) in enumerate(examples)
        ]
        for n, examples in enumerate(sets)
    ]
    joined = join_features([build_features(part) for part in parts])
    assert_same(joined, build_features(list(chain.from_iterable(parts))))


def assert_is_kept(examples, directory, split=words_of, key=""):
    """Whether the cache gives the features without building them."""
    built = build_features(examples, split)
    with mock.patch("qanet.datasets.features.build_features"):
        assert_same(cached_features(examples, directory, split, key), built)


def test_the_second_time_the_features_come_from_the_cache(tmp_path):
    directory = tmp_path / "new" / "cache"
    assert_same(cached_features(EXAMPLES, directory), build_features(EXAMPLES))
    assert_is_kept(EXAMPLES, directory)
    assert len(list(directory.iterdir())) == 1


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, caplog):
    (tmp_path / "file").touch()
    assert_same(cached_features(EXAMPLES, tmp_path / "file"), build_features(EXAMPLES))
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert str(tmp_path / "file") in record.message


def changed(number, **changes):
    """EXAMPLES with one of them changed."""
    examples = list(EXAMPLES)
    examples[number] = replace(examples[number], **changes)
    return examples


@pytest.mark.parametrize(
    "examples",
    [
        EXAMPLES[:2],
        EXAMPLES[1:],
        EXAMPLES[::-1],
        [*EXAMPLES, EXAMPLES[0]],
        changed(0, question="Who slept?"),
        changed(0, context=CONTEXT.replace("slept", "dozed")),
        changed(0, answers=(Span("cat", 39),)),
        changed(0, answers=(Span("The cat", 0),)),
        changed(0, answers=()),
        # The first answer that the context holds is not the first of all.
        changed(1, answers=(Span("a dog", -1), Span("cat", 4))),
    ],
)
def test_other_examples_have_other_features(tmp_path, examples):
    cached_features(EXAMPLES, tmp_path)
    assert_same(cached_features(examples, tmp_path), build_features(examples))


def test_text_that_looks_like_the_end_of_an_example(tmp_path):
    one = [question(context="a", text="b\0[]\0c\0d")]
    two = [question(context="a", text="b"), question(context="c", text="d")]
    cached_features(one, tmp_path)
    assert_same(cached_features(two, tmp_path), build_features(two))


@pytest.fixture
def cache(tmp_path):
    """A filled cache, its file, and the file's content."""
    cached_features(EXAMPLES, tmp_path)
    (path,) = tmp_path.iterdir()
    return tmp_path, path, path.read_bytes()


def test_a_cut_off_cache_is_built_anew(cache):
    directory, path, whole = cache
    for length in {*range(0, len(whole), 97), len(whole) - 1}:
        path.write_bytes(whole[:length])
        assert_same(cached_features(EXAMPLES, directory), build_features(EXAMPLES))
        assert_is_kept(EXAMPLES, directory)


def test_a_cache_of_something_else_is_built_anew(cache):
    directory, path, _ = cache
    for content in (b"{}", b"PK\x03\x04", b"\x93NUMPY", b"\x80\x04N."):
        path.write_bytes(content)
        cached_features(EXAMPLES, directory)
        assert_is_kept(EXAMPLES, directory)
    for save in (np.save, np.savez):
        with path.open("wb") as file:
            save(file, np.zeros(3))
        cached_features(EXAMPLES, directory)
        assert_is_kept(EXAMPLES, directory)


def test_a_damaged_cache_is_never_trusted(cache):
    directory, path, whole = cache
    expected = build_features(EXAMPLES)
    # Thinly over the arrays; every byte of the directory at the end of the archive.
    places = {*range(0, len(whole), 11), *range(whole.index(b"PK\1\2"), len(whole))}
    for place in sorted(places):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        assert_same(cached_features(EXAMPLES, directory), expected)


def test_impossible_examples_are_told_from_answers_that_were_not_found():
    lost = Example("lost", "Who?", CONTEXT, (Span("dog", -1),))
    features = build_features([question(("cat", 4)), question(), lost])
    assert features.impossible.tolist() == [False, True, False]
    assert features.starts.tolist() == [1, -1, -1]
    joined = join_features([features, features])
    assert joined.impossible.tolist() == [False, True, False] * 2


def letters(text):
    return [*text], [(i, i + 1) for i in range(len(text))]


def test_another_way_of_splitting_has_other_features(tmp_path):
    cached_features(EXAMPLES, tmp_path)
    of_letters = cached_features(EXAMPLES, tmp_path, letters, key="letters")
    assert_same(of_letters, build_features(EXAMPLES, letters))
    assert_is_kept(EXAMPLES, tmp_path, letters, key="letters")


@pytest.fixture
def arrays():
    return to_arrays(build_features(EXAMPLES))


def test_features_without_spans_are_features(arrays):
    """A packed data set leaves them out."""
    found = from_arrays(arrays | {"context_spans": np.zeros((0, 2), "int32")})
    assert len(found) == len(EXAMPLES)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("words", lambda words: pack_json([1] * 99)),
        ("words", lambda words: words[:0]),
        ("context_splits", lambda splits: splits[::-1]),
        ("context_splits", lambda splits: np.array([1, *splits[1:]])),
        ("context_splits", lambda splits: np.array([0, 99, splits[-1]])),
        ("question_splits", lambda splits: splits[:-1]),
        ("context_words", lambda words: -words),
        ("context_words", lambda words: words + 99),
        ("context_of", lambda numbers: numbers[:1]),
        ("context_of", lambda numbers: numbers - 1),
        ("context_of", lambda numbers: numbers + 1),
        ("starts", lambda starts: starts * 0 - 1),
        ("ends", lambda ends: ends * 0 + 99),
        ("ends", lambda ends: ends * 0 - 1),
        ("impossible", lambda flags: flags.astype("int8")),
        ("starts", lambda starts: starts.astype("float32")),
    ],
)
def test_arrays_that_do_not_go_together(arrays, name, change):
    with pytest.raises(ValueError, match=r".+"):
        from_arrays(arrays | {name: change(arrays[name])})


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("context_splits", lambda splits: np.array([*splits[:-1], splits[-1] - 1])),
        ("context_spans", lambda spans: spans[:-1]),
        ("starts", lambda starts: starts[:1]),
        ("ends", lambda ends: ends[:1]),
    ],
)
def test_arrays_that_numpy_would_take(name, change):
    """They stand for something, though not for what was written."""
    arrays = to_arrays(build_features([question(("slept.", 43))] * 2))
    with pytest.raises(ValueError, match="do not go together"):
        from_arrays(arrays | {name: change(arrays[name])})


def test_an_answer_ends_in_its_context():
    arrays = to_arrays(build_features([question(("slept.", 43))]))
    assert from_arrays(arrays).ends.tolist() == from_arrays(arrays).context_lengths - 1
    with pytest.raises(ValueError, match="do not go together"):
        from_arrays(arrays | {"ends": arrays["ends"] + 1})
