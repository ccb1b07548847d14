"""Tests of qanet.datasets.soft_targets."""

from dataclasses import replace

import numpy as np
import pytest
from made_examples import example

from qanet.datasets.features import build_features
from qanet.datasets.soft_targets import (
    TeacherTargets,
    aligned,
    check_teacher,
    fingerprint,
    join_targets,
    load_targets,
    made_targets,
    save_targets,
)
from qanet.datasets.squad import Example
from qanet.decoding import ContextLogits, probabilities
from qanet.errors import UserError
from qanet.text.tokenizer import words_of

NAMES = ("teacher.npz", "train.json")
EXAMPLES = [example(n, (0, 0), number=i) for i, n in enumerate((5, 1, 7))]


def letters(text):
    """Each character but blanks a token."""
    places = [i for i, character in enumerate(text) if not character.isspace()]
    return [text[i] for i in places], [(i, i + 1) for i in places]


def said_of(examples, split, seed=0, knows_none=False):
    """Features, and logits that someone may give."""
    features = build_features(examples, split)
    random = np.random.default_rng(seed)
    logits = [
        ContextLogits(
            random.normal(scale=3, size=(2, n)).astype("float16").astype("float32"),
            float(np.float16(random.normal())) if knows_none else -np.inf,
        )
        for n in features.context_lengths
    ]
    return features, logits


def targets_of(examples, split=letters, **options):
    features, logits = said_of(examples, split, **options)
    return made_targets(examples, features, logits, "mine.json")


def rows(taught, count):
    return [taught.values[:, slice(*taught.splits[i : i + 2])] for i in range(count)]


def test_a_file_gives_back_what_was_said(tmp_path):
    features, logits = said_of(EXAMPLES, letters, knows_none=True)
    save_targets(
        tmp_path / "t.npz", made_targets(EXAMPLES, features, logits, "mine.json")
    )
    targets = load_targets(tmp_path / "t.npz")
    assert targets.data == "mine.json"
    for i, expected in enumerate(logits):
        np.testing.assert_array_equal(targets.logits_of(i).tokens, expected.tokens)
        assert targets.logits_of(i).no_answer == expected.no_answer
        np.testing.assert_array_equal(targets.spans_of(i), features.spans_of(i))


def test_parts_are_joined_as_if_they_were_one():
    features, logits = said_of(EXAMPLES, letters)
    parts = [
        made_targets(
            EXAMPLES[part], build_features(EXAMPLES[part], letters), logits[part], "d"
        )
        for part in (slice(0, 2), slice(2, 3))
    ]
    whole = made_targets(EXAMPLES, features, logits, "d")
    joined = join_targets(parts)
    for name, value in vars(whole).items():
        np.testing.assert_array_equal(getattr(joined, name), value)


def test_on_the_same_tokens_the_probabilities_are_the_teachers():
    features, logits = said_of(EXAMPLES, letters)
    targets = made_targets(EXAMPLES, features, logits, "d")
    taught = aligned(targets, EXAMPLES, features, False, 3, NAMES)
    check_teacher(taught, features)
    for found, said in zip(rows(taught, 3), logits, strict=True):
        expected = np.log(probabilities(said)[:, 1:])
        np.testing.assert_allclose(found, expected, rtol=2e-3)


def test_other_tokens_share_what_the_teacher_says():
    targets = targets_of(EXAMPLES)
    words = build_features(EXAMPLES)
    taught = aligned(targets, EXAMPLES, words, False, 3, NAMES)
    sizes = [found.shape[1] for found in rows(taught, 3)]
    assert sizes == words.context_lengths.tolist()
    for i, found in enumerate(rows(taught, 3)):
        said = np.exp(found.astype("float64"))
        np.testing.assert_allclose(said.sum(axis=1), 1.0, atol=2e-3)
        # A word starts where its first letter does.
        letter = probabilities(targets.logits_of(i))[0, 1:]
        places = targets.spans_of(i)[:, 0]
        begin, end = words.spans_of(i)[0]
        inside = (begin <= places) & (places < end)
        np.testing.assert_allclose(said[0, 0], letter[inside].sum(), rtol=2e-3)


def test_no_answer_comes_first_where_the_student_knows_it():
    features, logits = said_of(EXAMPLES, letters, knows_none=True)
    targets = made_targets(EXAMPLES, features, logits, "d")
    knows = rows(aligned(targets, EXAMPLES, features, True, 3, NAMES), 3)
    knows_not = rows(aligned(targets, EXAMPLES, features, False, 3, NAMES), 3)
    for one, other, said in zip(knows, knows_not, logits, strict=True):
        np.testing.assert_allclose(one, np.log(probabilities(said)), rtol=2e-3)
        # Without it the rest sums to one.
        assert other.shape[1] == one.shape[1] - 1
        np.testing.assert_allclose(
            np.exp(other.astype("float64")).sum(axis=1), 1.0, atol=2e-3
        )


def test_of_augmented_examples_those_that_the_teacher_has_seen_are_taught():
    seen, unseen = [example(n, (1, 1), number=8) for n in (4, 6)]
    more = [*EXAMPLES, unseen, seen]
    targets = targets_of([*EXAMPLES, seen])
    taught = aligned(targets, more, build_features(more), False, 3, NAMES)
    *_, said_of_unseen, said_of_seen = rows(taught, 5)
    assert said_of_unseen.shape[1] == 0
    alone = aligned(targets, [seen], build_features([seen]), False, 1, NAMES)
    np.testing.assert_array_equal(said_of_seen, alone.values)


@pytest.mark.parametrize("field", ["id", "question", "context"])
def test_a_teacher_of_other_questions_is_refused(field):
    other = replace(EXAMPLES[1], **{field: "The mat sat"})
    examples = [EXAMPLES[0], other, EXAMPLES[2]]
    with pytest.raises(UserError) as error:
        aligned(
            targets_of(EXAMPLES), examples, build_features(examples), False, 3, NAMES
        )
    message = str(error.value)
    assert message.startswith("teacher.npz: made of mine.json, it says nothing of 1 ")
    assert "of the 3 questions of train.json" in message
    assert f"the first being {examples[1].id};" in message


def test_a_teacher_that_does_not_know_no_answer_is_refused():
    features = build_features(EXAMPLES)
    with pytest.raises(UserError, match=r"teacher.npz: .*data\.no_answer"):
        aligned(targets_of(EXAMPLES), EXAMPLES, features, True, 3, NAMES)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": np.int64(99)},
        {"logits": None},
        {"logits": np.zeros((2, 4), "float16")},
        {"logits": np.zeros((2, 3), "float32")},
        {"logits_splits": np.zeros(0, "int64")},
        {"logits_splits": np.array([0, 3, 3])},
        {"spans": np.array([["a", "b"]] * 3)},
        {"no_answer": np.zeros(3, "float16")},
        {"context_of": np.array([7], "int32")},
        {"context_of": np.array([-1], "int32")},
        {"context_splits": np.array([1, 3])},
        {"spans": np.zeros((1, 2), "int32")},
        {"questions": np.frombuffer(b"{", dtype=np.uint8)},
        {"format": np.float64("inf")},
        {"context_splits": np.array([0, 3, 1]), "spans": np.zeros((1, 2), "int32")},
        {"context_splits": np.array([0, 2]), "spans": np.zeros((2, 2), "int32")},
        {"no_answer": np.zeros(1, "float32")},
        {"logits_splits": np.array([0.0, 3.0])},
        {"context_splits": np.array([0.0, 3.0])},
        {"logits_splits": np.array([1, 4]), "logits": np.zeros((2, 4), "float16")},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_file_that_is_not_ours(tmp_path, changes):
    path = tmp_path / "t.npz"
    save_targets(path, targets_of([example(1, (0, 0))]))
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files} | changes
    np.savez(path, **{k: v for k, v in arrays.items() if v is not None})
    with pytest.raises(UserError, match="python -m qanet teach") as error:
        load_targets(path)
    assert str(error.value).startswith(f"{path}: ")


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(UserError, match=r"t\.npz: cannot be read: No such file"):
        load_targets(tmp_path / "t.npz")
    (tmp_path / "t.npz").write_bytes(b"no archive")
    with pytest.raises(UserError, match=r"t\.npz: damaged"):
        load_targets(tmp_path / "t.npz")


def test_fingerprints_tell_the_fields_apart_and_take_any_text():
    one = Example("1", "2 who?", "\ud83d", ())
    other = Example("12", " who?", "\ud83d", ())
    assert fingerprint(one) != fingerprint(other)
    one, other = Example("1", "who? a", "b", ()), Example("1", "who? ", "ab", ())
    assert fingerprint(one) != fingerprint(other)


def test_tokens_that_the_teacher_never_starts_at_are_impossible():
    """A word's inner letters get nothing, without a warning."""
    targets = targets_of(EXAMPLES, split=words_of)
    taught = aligned(
        targets, EXAMPLES, build_features(EXAMPLES, letters), False, 3, NAMES
    )
    starts, ends = rows(taught, 3)[0]
    # "The": a start at its first letter, an end at its last.
    assert np.isfinite(starts[:3]).tolist() == [True, False, False]
    assert np.isfinite(ends[:3]).tolist() == [False, False, True]


def test_a_teacher_that_knows_no_answer_of_some_questions_alone_is_refused():
    features, logits = said_of(EXAMPLES, letters, knows_none=True)
    logits[1] = logits[1]._replace(no_answer=-np.inf)
    targets = made_targets(EXAMPLES, features, logits, "d")
    with pytest.raises(UserError, match=r"teacher.npz: .*data\.no_answer"):
        aligned(targets, EXAMPLES, features, True, 3, NAMES)


FEATURES = build_features([example(2, (0, 0)), example(3, (0, 0), number=1)])


def teacher(values=None, splits=(0, 3, 3), none_first=True):
    values = np.zeros((2, splits[-1]), "float16") if values is None else values
    return TeacherTargets(values, np.array(splits), none_first)


@pytest.mark.parametrize(
    ("splits", "none_first"),
    [((0, 3, 7), True), ((0, 3, 3), True), ((0, 2, 5), False), ((0, 0, 3), False)],
)
def test_a_teacher_of_these_examples(splits, none_first):
    check_teacher(teacher(None, splits, none_first), FEATURES)


@pytest.mark.parametrize(
    "changes",
    [
        {"values": np.full((2, 3), np.nan, "float16")},
        {"splits": (1, 4, 4)},
        {"splits": (0, 2, 5)},
        {"splits": (0, 3, 7), "none_first": False},
        {"splits": (0, 3)},
    ],
)
def test_a_teacher_of_something_else(changes):
    with pytest.raises(ValueError, match="teacher"):
        check_teacher(teacher(**changes), FEATURES)
