"""Tests of qanet.datasets.batches."""

import itertools
from collections import Counter

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qanet.config import ORIGINAL, DataConfig, VocabularyConfig
from qanet.datasets import batches
from qanet.datasets.batches import (
    NO_ITEM,
    READING_PAIRS,
    READING_WINDOW,
    BatchMaker,
    PlannedBatch,
    Windows,
    plan_reading,
    plan_reading_any_shape,
    plan_training,
    reading_windows,
    training_batches,
    training_dataset,
    training_windows,
)
from qanet.datasets.features import build_features
from qanet.datasets.squad import Example, Span
from qanet.errors import UserError
from qanet.text.vocabulary import Vocabulary

WORDS = ["The", "cat", "sat", "on", "a", "mat", "éclair", "2024"]


def data_config(*buckets, **limits):
    limits = {"context_limit": buckets[-1], "answer_limit": buckets[-1]} | limits
    return DataConfig(buckets=buckets, **limits)


def text(length, seed=0):
    """A text of so many tokens, for each seed another."""
    return " ".join(WORDS[(seed + i * i) % len(WORDS)] for i in range(length))


def example(context_length, answer=None, question_length=3, number=0):
    """An example whose answer is the tokens `answer`, first and last, if any."""
    context = text(context_length, number)
    spans = ()
    if answer is not None:
        words = context.split(" ")
        first, last = answer
        start = len(" ".join([*words[:first], ""]))
        spans = (Span(" ".join(words[first : last + 1]), start),)
    return Example(
        str(number), text(question_length, number + 1), context, spans, str(number)
    )


def features_of(*answers_in_contexts):
    """Features of examples of (context length, answer)."""
    return build_features(
        [
            example(n, answer, number=i)
            for i, (n, answer) in enumerate(answers_in_contexts)
        ]
    )


def windows_of(*lengths):
    """Windows of so many tokens, an example each."""
    lengths = np.array(lengths, dtype=np.int64)
    return Windows(np.arange(len(lengths)), np.zeros_like(lengths), lengths)


def planned(windows, config, batch_size, steps, seed):
    """The plan of a training on these windows alone."""
    sources = {ORIGINAL: len(windows)}
    return plan_training(windows, sources, config, batch_size, steps, seed)


def items_of(plan):
    return [item for batch in plan for item in batch.items.tolist()]


def assert_same_plan(one, other):
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left.items, right.items)
        assert left.context_length == right.context_length
        assert left.question_length == right.question_length


# Training windows.


@st.composite
def contexts(draw):
    """A context length, and the first and last token of an answer or None."""
    length = draw(st.integers(1, 40))
    if draw(st.booleans()):
        first = draw(st.integers(0, length - 1))
        return length, (first, draw(st.integers(first, length - 1)))
    return length, None


@given(
    st.lists(contexts(), max_size=6),
    st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(n, 20))),
    st.integers(0, 9),
)
def test_a_training_window_holds_the_answer(texts, limits, seed):
    answer_limit, context_limit = limits
    config = data_config(context_limit, answer_limit=answer_limit)
    features = features_of(*texts)
    windows = training_windows(features, config, seed)
    # Left out are exactly those without an answer and those with too long a one.
    assert windows.examples.tolist() == [
        i
        for i, (_, answer) in enumerate(texts)
        if answer and answer[1] - answer[0] + 1 <= answer_limit
    ]
    for i, offset, length in zip(
        windows.examples, windows.offsets, windows.lengths, strict=True
    ):
        context_length, (first, last) = texts[i]
        assert length == min(context_length, context_limit)
        assert 0 <= offset <= first
        assert last < offset + length <= context_length


def test_an_answer_of_just_the_limit_is_trained_on():
    config = data_config(8, answer_limit=3)
    features = features_of((8, (2, 4)), (8, (2, 5)))
    assert training_windows(features, config, seed=0).examples.tolist() == [0]


def test_the_place_of_a_window_is_any_that_holds_the_answer():
    config = data_config(4, answer_limit=2)
    features = features_of(*[(10, (5, 6))] * 200, *[(10, (0, 1))] * 9, (10, (9, 9)))
    offsets = training_windows(features, config, seed=1).offsets.tolist()
    places = Counter(offsets[:200])
    assert sorted(places) == [3, 4, 5]
    assert min(places.values()) > 40  # of 67 expected
    assert offsets[200:] == [0] * 9 + [6]


def test_the_place_of_a_window_follows_from_the_seed():
    config = data_config(8)
    features = features_of(*[(40, (20, 21))] * 20)
    offsets = [training_windows(features, config, s).offsets for s in (1, 1, 2)]
    assert offsets[0].tolist() == offsets[1].tolist()
    assert offsets[0].tolist() != offsets[2].tolist()


# The training plan.


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=20),
    st.integers(1, 7),
    st.integers(0, 30),
    st.integers(0, 3),
)
def test_every_item_takes_its_turn_once_an_epoch(lengths, batch_size, steps, seed):
    config = data_config(4, 7, 12)
    plan = planned(windows_of(*lengths), config, batch_size, steps, seed)
    assert len(plan) == steps
    for bucket, shortest in ((4, 0), (7, 5), (12, 8)):
        of_bucket = {i for i, n in enumerate(lengths) if shortest <= n <= bucket}
        batches = [batch for batch in plan if batch.context_length == bucket]
        assert all(len(batch.items) == batch_size for batch in batches)
        # What an epoch leaves over comes first in the next: each run of as many
        # items as the bucket has holds each of them once.
        items = items_of(batches)
        whole = len(items) // len(of_bucket) * len(of_bucket) if of_bucket else 0
        for first in range(0, whole, len(of_bucket) or 1):
            assert set(items[first : first + len(of_bucket)]) == of_bucket
        rest = items[whole:]
        assert len(set(rest)) == len(rest)
        assert set(rest) <= of_bucket
    assert {batch.context_length for batch in plan} <= {4, 7, 12}
    assert {batch.question_length for batch in plan} <= {config.question_limit}


def test_no_item_is_left_behind_while_others_have_their_turns():
    lengths = [3] * 45 + [9] * 23  # neither a multiple of the batch size
    epochs = 10
    plan = planned(windows_of(*lengths), data_config(4, 12), 8, 85, seed=0)
    turns = Counter(items_of(plan))
    assert len(items_of(plan)) == epochs * len(lengths)
    assert set(turns) == set(range(len(lengths)))
    assert set(turns.values()) <= {epochs - 1, epochs, epochs + 1}


def test_every_epoch_has_an_order_of_its_own():
    plan = planned(windows_of(*[3] * 40), data_config(4), 8, 15, seed=0)
    epochs = np.array(items_of(plan)).reshape(3, 40)
    orders = {tuple(epoch) for epoch in epochs.tolist()} | {tuple(range(40))}
    assert len(orders) == 4
    # Not the same batches in another order, either.
    batches = [frozenset(batch.items.tolist()) for batch in plan]
    assert len(set(batches)) == len(batches)


def test_the_buckets_take_turns():
    windows = windows_of(*[3] * 80, *[9] * 80)
    plan = planned(windows, data_config(4, 12), 8, 20, seed=0)
    lengths = [batch.context_length for batch in plan]
    assert Counter(lengths) == {4: 10, 12: 10}
    for half in (lengths[:10], lengths[10:]):
        assert 2 <= half.count(4) <= 8


def test_the_plan_follows_from_the_seed():
    windows = windows_of(*range(1, 13), *range(1, 13))
    config = data_config(4, 12)
    plans = [planned(windows, config, 4, 12, seed) for seed in (5, 5, 6)]
    assert_same_plan(plans[0], plans[1])
    assert items_of(plans[0]) != items_of(plans[2])


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=20),
    st.integers(1, 7),
    st.integers(0, 25),
    st.integers(0, 25),
)
def test_a_longer_plan_begins_like_a_shorter_one(lengths, batch_size, steps, more):
    """A run that is resumed with more steps must not see other batches."""
    windows, config = windows_of(*lengths), data_config(4, 12)
    short = planned(windows, config, batch_size, steps, seed=3)
    long = planned(windows, config, batch_size, steps + more, seed=3)
    assert_same_plan(short, long[:steps])


def test_a_batch_may_be_larger_than_the_data():
    (batch,) = planned(windows_of(3, 3, 3), data_config(4), 7, 1, seed=0)
    assert sorted(Counter(batch.items.tolist()).values()) == [2, 2, 3]


def test_nothing_to_plan():
    with pytest.raises(UserError, match="squad: original has no answer of at most"):
        planned(windows_of(), data_config(4), 8, 1, seed=0)


# Several training sets.


def mixed_config(**weights):
    augmented = {name: f"{name}.json" for name in weights if name != ORIGINAL}
    return data_config(4, 12, augmented=augmented, mix=weights)


def epochs_of(sizes, config, epochs, seed=0):
    """The items of each epoch of a plan in which every batch is one item."""
    windows = windows_of(*([3] * sum(sizes.values())))
    size = sum(round(sizes[ORIGINAL] * w) for w in config.mix.values())
    size = round(size / config.mix[ORIGINAL])
    plan = plan_training(windows, sizes, config, 1, epochs * size, seed)
    return np.array(items_of(plan)).reshape(epochs, size)


def test_an_epoch_has_the_original_and_a_share_of_the_others():
    sizes = {ORIGINAL: 30, "fr": 50, "de": 40}
    for epoch in epochs_of(sizes, mixed_config(original=3, fr=1, de=2), 4):
        counts = Counter(epoch.tolist())
        assert set(counts.values()) == {1}
        assert set(range(30)) <= counts.keys()
        assert sum(30 <= item < 80 for item in counts) == 10
        assert sum(80 <= item < 120 for item in counts) == 20


def test_others_are_drawn_anew_and_all_of_them_take_their_turns():
    sizes = {ORIGINAL: 30, "fr": 50}
    epochs = epochs_of(sizes, mixed_config(original=3, fr=1), 10)
    drawn = [epoch[epoch >= 30] for epoch in epochs]
    # Five epochs of ten are all fifty; the second time they are drawn otherwise.
    for five in (drawn[:5], drawn[5:]):
        assert sorted(np.concatenate(five).tolist()) == list(range(30, 80))
    sets = [frozenset(part.tolist()) for part in drawn]
    assert set(sets[:5]) != set(sets[5:])


def test_a_small_set_may_come_several_times_an_epoch():
    sizes = {ORIGINAL: 10, "fr": 4}
    (epoch,) = epochs_of(sizes, mixed_config(original=1, fr=1), 1)
    counts = Counter(epoch.tolist())
    assert set(range(10)) <= counts.keys()
    assert sorted(counts[item] for item in range(10, 14)) == [2, 2, 3, 3]


def test_sets_are_mixed_within_an_epoch():
    sizes = {ORIGINAL: 100, "fr": 100}
    (epoch,) = epochs_of(sizes, mixed_config(original=1, fr=1), 1)
    # Of 100 places about 50 are the original's; five standard deviations.
    assert abs(sum(epoch[:100] < 100) - 50) < 5 * 5


def test_a_set_without_weight_takes_no_part():
    config = data_config(4, features="packed.npz", mix={ORIGINAL: 1})
    windows = windows_of(*[3] * 20)
    plan = plan_training(windows, {ORIGINAL: 8, "fr": 12}, config, 4, 10, seed=0)
    assert set(items_of(plan)) == set(range(8))


def test_the_original_alone_is_planned_as_ever():
    windows, config = windows_of(*[3] * 20), data_config(4)
    plan = planned(windows, config, 4, 10, seed=5)
    random = np.random.default_rng(5)
    expected = np.concatenate([random.permutation(20), random.permutation(20)])
    assert items_of(plan) == expected.tolist()


def test_a_set_without_items_is_named():
    sizes = {ORIGINAL: 3, "fr": 0}
    with pytest.raises(UserError, match=r"fr\.json: fr has no answer"):
        plan_training(
            windows_of(3, 3, 3), sizes, mixed_config(original=1, fr=1), 1, 1, 0
        )


# The reading plan.


def test_questions_are_not_dropped_by_length_filters_and_missing_from_the_total():
    """Elsewhere dev loses what is too long for training, and scores look better."""
    config = data_config(8, 16, question_limit=4, answer_limit=2)
    examples = [
        example(n, answer, question_length, number)
        for number, (n, answer, question_length) in enumerate(
            [
                (5, (0, 1), 3),
                (17, (16, 16), 3),  # a context beyond context_limit
                (2600, (2599, 2599), 3),  # one beyond every window
                (5, (0, 4), 3),  # an answer beyond answer_limit
                (5, (0, 1), 50),  # a question beyond question_limit
                (5, None, 3),  # no answer
            ]
        )
    ]
    features = build_features(examples)
    windows = reading_windows(features, np.arange(len(examples)))
    lengths = features.question_lengths[windows.examples]
    plan = plan_reading(windows, lengths, config, batch_size=2)
    items = [item for item in items_of(plan) if item != NO_ITEM]
    read = {int(windows.examples[item]) for item in items}
    assert read == set(range(len(examples)))


# Tokens of contexts and of their questions.
SIZES = st.lists(
    st.tuples(st.integers(0, READING_WINDOW), st.integers(0, 40)),
    min_size=1,
    max_size=20,
)


@settings(deadline=None)
@given(
    SIZES,
    st.integers(1, 5),
    st.sampled_from([(16,), (16, 100), (400,), (1500,)]),
)
def test_every_item_is_read_once_and_whole(sizes, batch_size, buckets):
    config = data_config(*buckets, question_limit=5, answer_limit=1)
    windows = windows_of(*(length for length, _ in sizes))
    question_lengths = np.array([length for _, length in sizes])
    plan = plan_reading(windows, question_lengths, config, batch_size)
    items = items_of(plan)
    assert sorted(item for item in items if item != NO_ITEM) == list(range(len(sizes)))
    shapes = Counter()
    for batch in plan:
        rows = len(batch.items)
        assert rows == min(batch_size, max(1, READING_PAIRS // batch.context_length**2))
        real = batch.items[batch.items != NO_ITEM]
        assert (windows.lengths[real] <= batch.context_length).all()
        assert (question_lengths[real] <= batch.question_length).all()
        # The filling comes last and only in the last batch of a shape.
        assert len(real) > 0
        assert (batch.items[: len(real)] == real).all()
        shapes[batch.context_length, batch.question_length] += len(real) < rows
    assert max(shapes.values()) <= 1


def test_texts_are_padded_little_and_to_few_lengths():
    config = data_config(100, 160, question_limit=20, answer_limit=5)
    lengths = [1, 100, 101, 160, 161, 320, 321, 640, 641, 1000]
    plan = plan_reading(windows_of(*lengths), np.array([1] * 10), config, 1)
    padded = {lengths[batch.items[0]]: batch.context_length for batch in plan}
    expected = [100, 100, 160, 160, 320, 320, 640, 640, 1000, 1000]
    assert padded == dict(zip(lengths, expected, strict=True))
    questions = [1, 20, 21, 40, 41]
    plan = plan_reading(windows_of(*[5] * 5), np.array(questions), config, 1)
    padded = {questions[batch.items[0]]: batch.question_length for batch in plan}
    assert padded == dict(zip(questions, [20, 20, 40, 40, 80], strict=True))


def test_batches_of_long_texts_have_fewer_rows():
    config = data_config(100, 3000, question_limit=5, answer_limit=5)
    for length, rows in ((100, 40), (3000, 1)):
        plan = plan_reading(windows_of(*[length] * 40), np.ones(40, int), config, 40)
        assert {len(batch.items) for batch in plan} == {rows}


def test_shapes_that_fill_no_batch_are_joined():
    config = data_config(10, 20, question_limit=5, answer_limit=5)
    sizes = [(3, 5)] * 4 + [(15, 5)] * 2 + [(9, 6)] + [(15, 8)] + [(70, 5)]
    lengths, questions = zip(*sizes, strict=True)
    plan = plan_reading(windows_of(*lengths), np.array(questions), config, 2)
    shapes = Counter((b.context_length, b.question_length) for b in plan)
    # One item each is left of three shapes; the longest is 80 x 10.
    assert shapes == {(10, 5): 2, (20, 5): 1, (80, 10): 2}


@settings(deadline=None)
@given(
    SIZES,
    st.integers(1, 9),
)
def test_any_shape_reads_every_item_once_with_others_of_its_length(sizes, batch_size):
    lengths, question_lengths = (
        np.array(column) for column in zip(*sizes, strict=True)
    )
    plan = plan_reading_any_shape(windows_of(*lengths), question_lengths, batch_size)
    assert sorted(items_of(plan)) == list(range(len(sizes)))
    for batch in plan:
        assert len(batch.items) <= batch_size
        assert len(batch.items) * batch.context_length**2 <= max(
            READING_PAIRS, batch.context_length**2
        )
        mine = lengths[batch.items]
        assert batch.context_length == max(1, mine.max())
        assert batch.question_length == max(1, question_lengths[batch.items].max())
        assert mine.max() <= 1.25 * mine.min()
    # No two batches could have been one.
    for one, other in itertools.pairwise(plan):
        together = [*one.items, *other.items]
        assert (
            len(together) > batch_size
            or len(together) * other.context_length**2 > READING_PAIRS
            or len(one.items) == batch_size
            or lengths[together].max() > 1.25 * lengths[together].min()
        )


@pytest.mark.parametrize("length", [1, 401, 999, 1000])
def test_nothing_up_to_a_thousand_tokens_is_cut(length):
    windows = reading_windows(features_of((length, None)), np.array([0]))
    assert windows.offsets.tolist() == [0]
    assert windows.lengths.tolist() == [length]


@pytest.mark.parametrize("length", [1001, 1499, 1500, 1501, 2000, 3210])
def test_a_longer_text_is_read_in_windows_that_overlap_by_half(length):
    windows = reading_windows(features_of((3, None), (length, None)), np.array([0, 1]))
    assert windows.examples.tolist() == [0] + [1] * (len(windows) - 1)
    ends = windows.offsets + windows.lengths
    assert windows.offsets[1] == 0
    assert ends[-1] == length
    assert (windows.lengths[1:-1] == READING_WINDOW).all()
    assert (np.diff(windows.offsets[1:]) == READING_WINDOW // 2).all()
    assert windows.lengths[-1] > READING_WINDOW // 2


def test_only_the_chosen_examples_are_read_in_their_order():
    features = features_of((3, None), (4, None), (5, None))
    windows = reading_windows(features, np.array([2, 0]))
    assert windows.examples.tolist() == [2, 0]
    assert windows.lengths.tolist() == [5, 3]


# Batches.


def vocabulary(characters_per_word=3):
    config = VocabularyConfig(
        word_min_count=2, character_min_count=2, characters_per_word=characters_per_word
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


def noisy_maker(contexts, answers, config, label_noise=0.25):
    """A maker for contexts of one-letter words and answers, first and last token."""
    examples = [
        Example(
            str(i), "Who?", " ".join(words), (Span(" ".join(words[a : b + 1]), 2 * a),)
        )
        for i, (words, (a, b)) in enumerate(zip(contexts, answers, strict=True))
    ]
    features = build_features(examples)
    windows = training_windows(features, config, seed=0)
    table = vocabulary().table(features.words)
    return BatchMaker(features, table, windows, label_noise)


@pytest.mark.parametrize(
    ("context", "answer", "starts", "ends"),
    [
        # Once.
        ("abcd", (1, 2), {1: 1}, {2: 1}),
        # Its parts alone are no occurrences, nor is a part at the end of the text.
        ("abcbdcab", (1, 2), {1: 1}, {2: 1}),
        ("abcxcbab", (0, 2), {0: 1}, {2: 1}),
        ("abab", (0, 1), {0: 0.75, 2: 0.25}, {1: 0.75, 3: 0.25}),
        ("abxab", (3, 4), {3: 0.75, 0: 0.25}, {4: 0.75, 1: 0.25}),
        ("axaya", (2, 2), {2: 0.75, 0: 0.125, 4: 0.125}, {2: 0.75, 0: 0.125, 4: 0.125}),
        # Letters differ in case, and have no vectors of their own.
        ("xXyx", (0, 0), {0: 0.75, 3: 0.25}, {0: 0.75, 3: 0.25}),
        # Overlapping.
        ("aaa", (0, 1), {0: 0.75, 1: 0.25}, {1: 0.75, 2: 0.25}),
    ],
)
def test_other_places_of_an_answer_share_the_label_noise(context, answer, starts, ends):
    maker = noisy_maker([context], [answer], data_config(8))
    targets = maker.targets(PlannedBatch(np.array([0]), 8, 5))
    for name, expected in (("start_logits", starts), ("end_logits", ends)):
        (weights,) = targets[name].tolist()
        assert {i: w for i, w in enumerate(weights) if w} == expected


@settings(deadline=None)
@given(
    st.lists(
        st.text("ab", min_size=1, max_size=12).flatmap(
            lambda words: st.tuples(
                st.just(words),
                st.integers(0, len(words) - 1),
                st.integers(0, 3),
            )
        ),
        min_size=1,
        max_size=7,
    ),
    st.integers(1, 4),
)
def test_places_are_found_in_the_window_of_each_item(texts, chunk):
    contexts = [words for words, _, _ in texts]
    answers = [(first, min(first + n, len(words) - 1)) for words, first, n in texts]
    config = data_config(5, 8, answer_limit=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "CHUNK", chunk)
        maker = noisy_maker(contexts, answers, config, 0.5)
    items = np.arange(len(texts))[::-1]
    targets = maker.targets(PlannedBatch(items, 8, 5))
    for row, item in enumerate(items):
        offset, length = maker.windows.offsets[item], maker.windows.lengths[item]
        seen = contexts[item][offset : offset + length]
        first, last = answers[item]
        answer = contexts[item][first : last + 1]
        first, last = first - offset, last - offset
        others = {
            i for i in range(length) if seen[i:].startswith(answer) and i != first
        }
        for name, marked in (("start_logits", first), ("end_logits", last)):
            expected = np.zeros(8)
            for place in others:
                expected[place + marked - first] = 0.5 / len(others)
            expected[marked] = 0.5 if others else 1.0
            np.testing.assert_allclose(targets[name][row], expected, atol=1e-7)


@pytest.mark.parametrize(
    ("question", "context"), [("\u200b", "a b"), ("Who?", "\u200b")]
)
def test_a_text_without_a_token_is_all_padding(question, context):
    """Invisible characters are not blank, so they come through."""
    features = build_features([Example("q", question, context, ())])
    windows = reading_windows(features, np.array([0]))
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
    for batch, planned in zip(batches, plan, strict=True):
        assert_same_batch(batch, (maker.inputs(planned), maker.targets(planned)))


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="is for TensorFlow")
def test_tf_data_delivers_the_same_batches(training):
    maker, plan = training
    dataset = training_dataset(maker, plan)
    delivered = list(dataset.as_numpy_iterator())
    for batch, other in zip(delivered, training_batches(maker, plan), strict=True):
        assert_same_batch(batch, other)
    # The sizes that a compiled step relies on are static.
    inputs, targets = dataset.element_spec
    assert inputs["context_words"].shape.as_list() == [2, None]
    assert inputs["question_characters"].shape.as_list() == [2, None, 3]
    assert targets["start_logits"].shape.as_list() == [2, None]
