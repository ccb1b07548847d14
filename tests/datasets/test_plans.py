"""Tests of qanet.datasets.plans."""

import itertools
from collections import Counter

import hypothesis
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_examples import data_config, example, planned, windows_of

from qanet.config import ORIGINAL
from qanet.datasets import plans
from qanet.datasets.features import build_features
from qanet.datasets.plans import (
    NO_ITEM,
    READING_PAIRS,
    PlannedBatch,
    common_size,
    plan_reading,
    plan_reading_any_shape,
    plan_training,
)
from qanet.datasets.windows import (
    reading_windows,
)
from qanet.errors import UserError
from qanet.models.limits import ReadingLimits

LIMITS = ReadingLimits()
WINDOW = LIMITS.window


def items_of(plan):
    return [item for batch in plan for item in batch.items.tolist()]


def assert_same_plan(one, other):
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left.items, right.items)
        assert left.context_length == right.context_length
        assert left.question_length == right.question_length


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
    with pytest.raises(UserError, match="squad: original has no question to learn"):
        planned(windows_of(), data_config(4), 8, 1, seed=0)


# Several training sets.


def mixed_config(**weights):
    augmented = {name: f"{name}.json" for name in weights if name != ORIGINAL}
    return data_config(4, 12, augmented=augmented, mix=weights)


def epochs_of(sizes, config, epochs):
    """The items of each epoch of a plan in which every batch is one item."""
    windows = windows_of(*([3] * sum(sizes.values())))
    size = sum(round(sizes[ORIGINAL] * w) for w in config.mix.values())
    size = round(size / config.mix[ORIGINAL])
    plan = plan_training(windows, sizes, config, 1, epochs * size, 0)
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
    config = data_config(4, packed="packed.npz", mix={ORIGINAL: 1})
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
    with pytest.raises(UserError, match=r"fr\.json: fr has no question to learn"):
        plan_training(
            windows_of(3, 3, 3), sizes, mixed_config(original=1, fr=1), 1, 1, 0
        )


def test_a_set_of_which_nothing_would_be_drawn_is_named():
    config = mixed_config(original=1, fr=0.1)
    with pytest.raises(
        UserError, match=r"of fr no question would be drawn beside the 4"
    ):
        plan_training(windows_of(*[3] * 54), {ORIGINAL: 4, "fr": 50}, config, 1, 1, 0)


def test_what_an_epoch_leaves_of_a_set_comes_first_in_the_next():
    config = mixed_config(original=2, fr=1)  # three of eight an epoch
    plan = plan_training(
        windows_of(*[3] * 14), {ORIGINAL: 6, "fr": 8}, config, 1, 72, 0
    )
    drawn = [item for item in items_of(plan) if item >= 6]
    assert set(range(6, 14)) - {*drawn[:6]} <= set(drawn[6:9])


def test_a_batch_comes_where_its_bucket_is_full():
    lengths = [3] * 40 + [9] * 24
    plan = planned(windows_of(*lengths), data_config(4, 12), 4, 32, seed=5)
    random = np.random.default_rng(5)
    waiting, expected = {3: [], 9: []}, []
    for item in [*random.permutation(64), *random.permutation(64)]:
        queue = waiting[lengths[item]]
        queue.append(item)
        if len(queue) == 4:
            expected.append([*queue])
            queue.clear()
    assert [batch.items.tolist() for batch in plan] == expected


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
    windows = reading_windows(features, np.arange(len(examples)), LIMITS)
    lengths = features.question_lengths[windows.examples]
    plan = plan_reading(windows, lengths, config, 2, WINDOW)
    items = [item for item in items_of(plan) if item != NO_ITEM]
    read = {int(windows.examples[item]) for item in items}
    assert read == set(range(len(examples)))


# Tokens of contexts and of their questions.
SIZES = st.lists(
    st.tuples(
        st.integers(0, WINDOW),
        st.integers(0, 40) | st.integers(0, WINDOW),
    ),
    min_size=1,
    max_size=20,
)


def pairs_of(batch, rows=None):
    """Pairs of tokens that meet in a batch, or in one of so many rows."""
    n, m = batch.context_length, batch.question_length
    return (rows or len(batch.items)) * (n * n + n * m + m * m)


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
    plan = plan_reading(windows, question_lengths, config, batch_size, WINDOW)
    items = items_of(plan)
    assert sorted(item for item in items if item != NO_ITEM) == list(range(len(sizes)))
    shapes = Counter()
    for batch in plan:
        rows = len(batch.items)
        assert rows == batch_size or rows == 1 or pairs_of(batch) <= READING_PAIRS
        assert rows == batch_size or pairs_of(batch, rows + 1) > READING_PAIRS
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
    plan = plan_reading(windows_of(*lengths), np.array([1] * 10), config, 1, WINDOW)
    padded = {lengths[batch.items[0]]: batch.context_length for batch in plan}
    expected = [100, 100, 160, 160, 320, 320, 640, 640, 1000, 1000]
    assert padded == dict(zip(lengths, expected, strict=True))
    questions = [1, 20, 21, 40, 41]
    plan = plan_reading(windows_of(*[5] * 5), np.array(questions), config, 1, WINDOW)
    padded = {questions[batch.items[0]]: batch.question_length for batch in plan}
    assert padded == dict(zip(questions, [20, 20, 40, 40, 80], strict=True))


def test_batches_of_long_texts_have_fewer_rows():
    config = data_config(100, 3000, question_limit=5, answer_limit=5)
    for length, rows in ((100, 40), (3000, 1)):
        plan = plan_reading(
            windows_of(*[length] * 40), np.ones(40, int), config, 40, WINDOW
        )
        assert {len(batch.items) for batch in plan} == {rows}


def test_shapes_that_fill_no_batch_are_joined():
    config = data_config(10, 20, question_limit=5, answer_limit=5)
    sizes = [(3, 5)] * 4 + [(15, 5)] * 2 + [(9, 6)] + [(15, 8)] + [(70, 5)]
    lengths, questions = zip(*sizes, strict=True)
    plan = plan_reading(windows_of(*lengths), np.array(questions), config, 2, WINDOW)
    shapes = Counter((b.context_length, b.question_length) for b in plan)
    # One item each is left of three shapes; the longest is 80 x 10.
    assert shapes == {(10, 5): 2, (20, 5): 1, (80, 10): 2}


@settings(deadline=None)
@given(
    SIZES,
    st.integers(1, 9),
    st.sampled_from([1.0, 1.25]),
)
@hypothesis.example([(0, WINDOW), (0, 1)], 2, 1.0)
def test_any_shape_reads_every_item_once_with_others_of_its_length(
    sizes, batch_size, alike
):
    lengths, question_lengths = (
        np.array(column) for column in zip(*sizes, strict=True)
    )
    windows = windows_of(*lengths)
    plan = plan_reading_any_shape(windows, question_lengths, batch_size, alike)
    assert sorted(items_of(plan)) == list(range(len(sizes)))
    for batch in plan:
        assert len(batch.items) <= batch_size
        assert len(batch.items) == 1 or pairs_of(batch) <= READING_PAIRS
        mine = lengths[batch.items]
        assert batch.context_length == max(1, mine.max())
        assert batch.question_length == max(1, question_lengths[batch.items].max())
        assert mine.max() <= alike * mine.min()
    # No two batches could have been one.
    for one, other in itertools.pairwise(plan):
        together = [*one.items, *other.items]
        joined = PlannedBatch(
            np.array(together),
            other.context_length,
            max(one.question_length, other.question_length),
        )
        assert (
            len(together) > batch_size
            or pairs_of(joined) > READING_PAIRS
            or lengths[together].max() > alike * lengths[together].min()
        )


@pytest.mark.parametrize("any_shape", [False, True])
def test_long_questions_are_read_by_few_at_a_time(any_shape):
    windows, questions = windows_of(*[20] * 40), np.full(40, 1000)
    if any_shape:
        plan = plan_reading_any_shape(windows, questions, 40)
    else:
        config = data_config(20, question_limit=9)
        plan = plan_reading(windows, questions, config, 40, WINDOW)
    assert len(plan) >= 5
    assert max(map(pairs_of, plan)) <= READING_PAIRS


def test_the_share_of_the_others_is_rounded():
    # 5 / 3 are 1.67.
    for epoch in epochs_of({ORIGINAL: 5, "fr": 50}, mixed_config(original=3, fr=1), 4):
        assert set(range(5)) <= set(epoch.tolist())
        assert len(set(epoch.tolist())) == 7


def test_a_set_without_items_of_a_packed_data_set_is_named_by_its_file():
    config = data_config(4, 12, packed="packed.npz", mix={ORIGINAL: 1})
    with pytest.raises(
        UserError, match=r"^packed\.npz: original has no question to learn"
    ):
        plan_training(windows_of(), {ORIGINAL: 0}, config, 1, 1, 0)


def test_a_batch_may_have_just_as_many_pairs_as_there_may_be(monkeypatch):
    # Of two and one token seven.
    for most, expected in ((14, [[0, 1]]), (13, [[0], [1]])):
        monkeypatch.setattr(plans, "READING_PAIRS", most)
        plan = plan_reading_any_shape(windows_of(2, 2), np.array([1, 1]), 9)
        assert [batch.items.tolist() for batch in plan] == expected


def test_windows_that_are_read_together_are_about_equally_long():
    plan = plan_reading_any_shape(windows_of(100, 125, 126), np.array([1] * 3), 9)
    assert [batch.items.tolist() for batch in plan] == [[0, 1], [2]]


@pytest.mark.parametrize(("sizes", "common"), [([4, 4], 4), ([4, 2], None)])
def test_common_size(sizes, common):
    plan = [PlannedBatch(np.arange(size), 1, 1) for size in sizes]
    assert common_size(plan) == common
