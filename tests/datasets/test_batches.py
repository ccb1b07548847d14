"""Tests of qanet.datasets.batches."""

from collections import Counter
from dataclasses import replace

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_examples import data_config, example, features_of, planned, text, windows_of

from qanet.datasets.batches import (
    BatchMaker,
    reading_maker,
    training_batches,
    training_dataset,
)
from qanet.datasets.contextual import ContextualVectors
from qanet.datasets.features import build_features
from qanet.datasets.plans import NO_ITEM, PlannedBatch
from qanet.datasets.soft_targets import TeacherTargets
from qanet.datasets.squad import Example, Span
from qanet.datasets.windows import Windows, reading_windows, training_windows
from qanet.models.limits import ReadingLimits
from qanet.text.vocabulary import Vocabulary, VocabularyConfig


def vocabulary():
    config = VocabularyConfig(
        word_min_count=2, character_min_count=2, characters_per_word=3
    )
    counts = Counter({"the": 3, "cat": 2, "a": 2, "mat": 2, "rare": 1})
    return Vocabulary.build(counts, None, config)


def maker_of(examples, windows):
    features = build_features(examples)
    return BatchMaker(features, vocabulary().table(features.words), windows)


def padded(words, size):
    """Rows and spellings of the first `size` of some words, in plain Python."""
    row, spell = vocabulary().row, vocabulary().spell
    words = words[:size]
    rows = [row(word) for word in words] + [0] * (size - len(words))
    spellings = [spell(word) for word in words] + [[]] * (size - len(words))
    return rows, [spelling + [0] * (3 - len(spelling)) for spelling in spellings]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=5
    ).flatmap(
        lambda sizes: st.tuples(
            st.just(sizes),
            st.tuples(*(st.integers(0, n - 1) for n, _ in sizes)),
            st.lists(st.integers(NO_ITEM, len(sizes) - 1), min_size=1, max_size=4),
        )
    ),
    st.integers(9, 12),
    st.integers(1, 12),
)
def test_inputs_are_the_words_of_the_window(drawn, context_size, question_size):
    sizes, offsets, items = drawn
    examples = [
        example(length, None, question_length, i)
        for i, (length, question_length) in enumerate(sizes)
    ]
    lengths = np.array([length for length, _ in sizes]) - offsets
    # Items need not be in the order of the examples.
    order = np.arange(len(sizes))[::-1]
    windows = Windows(order, np.array(offsets)[order], lengths[order])
    batch = PlannedBatch(np.array(items), context_size, question_size)
    inputs = maker_of(examples, windows).inputs(batch)
    for row, item in enumerate(items):
        words = [[], []]
        if item != NO_ITEM:
            read = examples[order[item]]
            context = read.context.split()[offsets[order[item]] :]
            words = [context, read.question.split()]
        for name, text_words, size in zip(
            ("context", "question"), words, (context_size, question_size), strict=True
        ):
            rows, characters = padded(text_words, size)
            assert inputs[f"{name}_words"][row].tolist() == rows
            assert inputs[f"{name}_characters"][row].tolist() == characters
    assert {array.dtype for array in inputs.values()} == {np.dtype("int32")}


def test_a_word_without_a_vector_keeps_its_characters():
    maker = maker_of([Example("q", "tea", "The tame cat", ())], windows_of(3))
    inputs = maker.inputs(PlannedBatch(np.array([0]), 4, 2))
    words = vocabulary()
    unknown, the, cat = 1, words.row("the"), words.row("cat")
    assert inputs["context_words"].tolist() == [[the, unknown, cat, 0]]
    assert inputs["question_words"].tolist() == [[unknown, 0]]
    (tea,) = inputs["question_characters"][:, 0].tolist()
    assert tea == [words.characters.index(c) for c in "tea"]
    assert inputs["context_characters"][0, 3].tolist() == [0, 0, 0]


def one_token(weights):
    """The token that has all the weight."""
    assert weights.dtype == np.float32
    (token,) = np.flatnonzero(weights)
    assert weights[token] == 1.0
    return token


def test_targets_count_from_the_window():
    config = data_config(4, answer_limit=2)
    texts = [(10, (5, 6)), (10, (9, 9)), (3, (0, 1))]
    features = features_of(*texts)
    windows = training_windows(features, config, seed=0)
    maker = BatchMaker(features, vocabulary().table(features.words), windows)
    batch = PlannedBatch(np.array([2, 0, 1]), 4, 5)
    targets, inputs = maker.targets(batch), maker.inputs(batch)
    words = vocabulary()
    for row, item in enumerate(batch.items):
        begin, end = (one_token(weights[row]) for weights in targets.values())
        first, last = texts[item][1]
        assert (begin, end) == (
            first - windows.offsets[item],
            last - windows.offsets[item],
        )
        gold = text(10, item).split()[first : last + 1]
        rows = inputs["context_words"][row, begin : end + 1].tolist()
        assert rows == [words.row(word) for word in gold]


def test_targets_of_a_model_that_knows_no_answer_begin_with_it():
    config = data_config(4, no_answer=True)
    contexts = [("abcd", None), ("abab", (0, 1)), ("abcd", (3, 3)), ("aaaa", None)]
    examples = [
        Example(
            str(i),
            "Who?",
            " ".join(words),
            (Span(" ".join(words[place[0] : place[1] + 1]), 2 * place[0]),)
            if place
            else (),
            impossible=not place,
        )
        for i, (words, place) in enumerate(contexts)
    ]
    features = build_features(examples)
    windows = training_windows(features, config, seed=0)
    table = vocabulary().table(features.words)
    maker = BatchMaker(features, table, windows, no_answer=True)
    targets = maker.targets(PlannedBatch(np.arange(4), 4, 5))
    none, last = [1, 0, 0, 0, 0], [0, 0, 0, 0, 1]
    expected_starts = [none, [0, 1, 0, 0, 0], last, none]
    expected_ends = [none, [0, 0, 1, 0, 0], last, none]
    np.testing.assert_array_equal(targets["start_logits"], expected_starts)
    np.testing.assert_array_equal(targets["end_logits"], expected_ends)
    assert {weights.dtype for weights in targets.values()} == {np.dtype("float32")}


@pytest.mark.parametrize("none_first", [False, True])
def test_what_a_teacher_says_is_cut_as_the_windows_are(none_first):
    examples = [example(9, (3, 4)), example(4, (0, 0), number=1)]
    none = int(none_first)
    sizes = [none + 9, none + 4]
    # Each example's column tells which it is; the second one is not taught.
    values = np.tile(np.arange(sizes[0], dtype="float16"), (2, 1))
    values[1] += 100
    teacher = TeacherTargets(values, np.array([0, sizes[0], sizes[0]]), none_first)
    windows = Windows(np.array([0, 1]), np.array([2, 0]), np.array([5, 4]))
    features = build_features(examples)
    maker = BatchMaker(
        *(features, vocabulary().table(features.words), windows),
        no_answer=none_first,
        teacher=teacher,
    )

    targets = maker.targets(PlannedBatch(np.array([1, 0]), 6, 3))

    inf = np.inf
    expected = [*range(none), *range(none + 2, none + 7), -inf]
    for name, more in (("teacher_start_logits", 0), ("teacher_end_logits", 100)):
        untold, told = targets[name].tolist()
        assert untold == [-inf] * (none + 6)
        assert told == [value + more for value in expected]
        assert targets[name].shape == targets["start_logits"].shape
        assert targets[name].dtype == np.float32


@pytest.mark.parametrize(
    ("question", "context"), [("\u200b", "a b"), ("Who?", "\u200b")]
)
def test_a_text_without_a_token_is_all_padding(question, context):
    """Invisible characters are not blank, so they come through."""
    features = build_features([Example("q", question, context, ())])
    windows = reading_windows(features, np.array([0]), ReadingLimits())
    maker = BatchMaker(features, vocabulary().table(features.words), windows)
    inputs = maker.inputs(PlannedBatch(np.array([0]), 4, 3))
    empty = "question" if question == "\u200b" else "context"
    assert not inputs[f"{empty}_words"].any()
    assert not inputs[f"{empty}_characters"].any()


# What a training is fed.


@pytest.fixture
def training():
    """A maker, and a plan with two context lengths."""
    examples = [example(3 + i, (i, i + 1), 2 + i % 3, i) for i in range(9)]
    config = data_config(5, 8, question_limit=3, answer_limit=2)
    features = build_features(examples)
    windows = training_windows(features, config, seed=0)
    maker = BatchMaker(features, vocabulary().table(features.words), windows)
    plan = planned(windows, config, 2, 12, seed=0)
    assert {batch.context_length for batch in plan} == {5, 8}
    return maker, plan


def assert_same_batch(one, other):
    for left, right in zip(one, other, strict=True):
        assert list(left) == list(right)
        for name in left:
            assert left[name].dtype == right[name].dtype
            np.testing.assert_array_equal(left[name], right[name])


def test_batches_of_a_plan_come_in_order(training):
    maker, plan = training
    batches = list(training_batches(maker, plan))
    assert len(batches) == len(plan)
    for batch, of_plan in zip(batches, plan, strict=True):
        assert_same_batch(batch, (maker.inputs(of_plan), maker.targets(of_plan)))


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="is for TensorFlow")
def test_tf_data_delivers_the_same_batches(training):
    maker, plan = training
    dataset = training_dataset(maker, plan, size=2)
    delivered = list(dataset.as_numpy_iterator())
    for batch, other in zip(delivered, training_batches(maker, plan), strict=True):
        assert_same_batch(batch, other)
    # The sizes that a compiled step relies on are static.
    inputs, targets = dataset.element_spec
    assert inputs["context_words"].shape.as_list() == [2, None]
    assert inputs["question_characters"].shape.as_list() == [2, None, 3]
    assert targets["start_logits"].shape.as_list() == [2, None]


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="is for TensorFlow")
def test_the_end_of_the_data_waits_for_no_tuning(training):
    """A thread of tf.data would hold it up for as long as a minute."""
    maker, plan = training
    assert not training_dataset(maker, plan, size=2).options().autotune.enabled


def test_contextual_vectors_are_cut_and_padded_as_the_words_are():
    features = build_features([example(5, None, 2), example(3, None, 4, number=1)])
    # Each vector tells its text and its token.
    context = np.arange(8, dtype="float16").reshape(8, 1, 1) / 4 + 1
    question = np.arange(6, dtype="float16").reshape(6, 1, 1) / 4 + 100
    windows = Windows(np.array([0, 1]), np.array([2, 0]), np.array([3, 3]))
    maker = BatchMaker(
        *(features, vocabulary().table(features.words), windows),
        contextual=ContextualVectors(context, question),
    )
    inputs = maker.inputs(PlannedBatch(np.array([1, 0, NO_ITEM]), 4, 3))
    assert inputs["context_contextual"].dtype == np.float16
    assert inputs["context_contextual"][..., 0, 0].tolist() == [
        [2.25, 2.5, 2.75, 0],
        [1.5, 1.75, 2, 0],
        [0, 0, 0, 0],
    ]
    assert inputs["question_contextual"][..., 0, 0].tolist() == [
        [100.5, 100.75, 101],
        [100, 100.25, 0],
        [0, 0, 0],
    ]


def test_a_reader_is_given_its_encoders_contextual_vectors():
    class Ones:
        layers, width, key, cache = 1, 1, "ones", None

        def encode(self, texts, spans):
            return (np.ones((len(places), 1, 1), "float16") for places in spans)

    examples = [example(3, None, 2)]
    contextual = replace(vocabulary(), contextual=Ones())
    features = build_features(examples)
    maker = reading_maker(examples, features, contextual, windows_of(3))
    inputs = maker.inputs(PlannedBatch(np.array([0]), 4, 3))
    assert inputs["context_contextual"].sum() == 3
    assert inputs["question_contextual"].sum() == 2


def test_tf_data_delivers_batches_of_several_sizes():
    """As those of about equally many tokens are."""
    features = build_features([example(3, (0, 1), 2, i) for i in range(5)])
    maker = BatchMaker(
        features, vocabulary().table(features.words), windows_of(*[3] * 5)
    )
    plan = [PlannedBatch(np.arange(3), 3, 2), PlannedBatch(np.array([3, 4]), 3, 2)]
    dataset = training_dataset(maker, plan, size=None)
    sizes = [len(inputs["context_words"]) for inputs, _ in dataset.as_numpy_iterator()]
    assert sizes == [3, 2]


def test_windows_need_not_be_of_the_first_examples():
    """Those of examples that cannot be trained on are left out."""
    examples = [example(9, (0, 0)), example(4, (2, 3), number=1), example(4, number=2)]
    features = build_features(examples)
    windows = Windows(np.array([1, 2]), np.array([1, 0]), np.array([3, 4]))
    # Each column tells its example and its token; no answer is the first of each.
    said = [10 * i + np.arange(1 + length) for i, length in enumerate((9, 4, 4))]
    teacher = TeacherTargets(
        np.tile(np.concatenate(said).astype("float16"), (2, 1)),
        np.array([0, 10, 15, 20]),
        none_first=True,
    )
    table = {"words": np.zeros(len(features.words), "int32")}
    maker = BatchMaker(features, table, windows, no_answer=True, teacher=teacher)
    targets = maker.targets(PlannedBatch(np.array([0, 1]), 4, 3))
    assert targets["start_logits"].tolist() == [[0, 0, 1, 0, 0], [1, 0, 0, 0, 0]]
    assert targets["end_logits"].tolist() == [[0, 0, 0, 1, 0], [1, 0, 0, 0, 0]]
    assert targets["teacher_start_logits"].tolist() == [
        [10, 12, 13, 14, -np.inf],
        [20, 21, 22, 23, 24],
    ]
