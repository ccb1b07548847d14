"""Tests of qanet.datasets.length_buckets."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qanet.datasets.length_buckets import LengthBuckets
from qanet.datasets.plans import NO_ITEM
from qanet.errors import UserError


def made(lengths, tokens=16, seed=0):
    return LengthBuckets(np.array(lengths, dtype=np.int64), (4, 8), tokens, seed)


def items_of(plan):
    return [int(item) for batch in plan for item in batch.items[batch.real]]


@given(st.lists(st.integers(1, 10), min_size=1, max_size=30), st.integers(0, 3))
def test_every_item_takes_its_turn_in_its_bucket(lengths, seed):
    buckets = made([*lengths, 4], seed=seed)
    lengths = np.array([*lengths, 4])
    fits = np.flatnonzero(lengths <= 8)
    assert buckets.left_out == len(lengths) - len(fits)
    assert sorted(items_of(buckets.reading())) == fits.tolist()
    drawn = buckets.plan(60)
    assert len(drawn) == 60
    for batch in drawn:
        shortest = 0 if batch.context_length == 4 else 4
        assert (len(batch.items), batch.context_length) in ((4, 4), (2, 8))
        assert (lengths[batch.items] <= batch.context_length).all()
        assert (lengths[batch.items] > shortest).all()
    for length in (4, 8):
        turns = Counter(items_of(b for b in drawn if b.context_length == length))
        if turns:
            assert max(turns.values()) - min(turns.values()) <= 2


def test_the_last_batch_is_filled_up():
    whole, rest = made([1] * 6).reading()
    assert whole.items.tolist() == [0, 1, 2, 3]
    assert rest.items.tolist() == [4, 5, NO_ITEM, NO_ITEM]
    assert rest.real.tolist() == [True, True, False, False]


def test_what_would_fill_the_memory_is_not_planned(monkeypatch):
    monkeypatch.setattr("qanet.datasets.length_buckets.LARGEST", 9)
    # Batches of 4.
    assert len(made([1] * 6).plan(2)) == 2
    with pytest.raises(UserError, match=r"training\.steps=3: .* 9 come to 2 steps"):
        made([1] * 6).plan(3)


def test_the_plan_follows_from_the_seed_and_not_from_its_length():
    lengths = [i % 7 + 1 for i in range(40)]
    whole, part, other = (
        [batch.items.tolist() for batch in made(lengths, seed=seed).plan(steps)]
        for steps, seed in ((30, 0), (17, 0), (30, 7))
    )
    assert whole[:17] == part
    assert whole != other


def test_epochs_differ():
    items = np.array(items_of(made([2] * 40).plan(30))).reshape(3, 40)
    assert len({tuple(epoch) for epoch in items.tolist()}) == 3


def test_replicas_share_every_batch():
    buckets = made([2] * 40, tokens=30)
    assert {len(batch.items) for batch in buckets.plan(30)} == {7}
    assert {len(batch.items) for batch in buckets.plan(30, replicas=3)} == {6}
    with pytest.raises(UserError, match=r"batch_tokens=30: .* each of 4 replicas"):
        buckets.plan(30, replicas=4)


def test_no_item_is_left_behind_while_others_have_their_turns():
    # Each epoch fills a batch and leaves one more item over.
    buckets = LengthBuckets(np.full(33, 3), (4,), 4 * 32, seed=0)
    turns = Counter(items_of(buckets.plan(31)))
    assert sum(turns.values()) == 31 * 32
    assert set(turns.values()) == {30, 31}


def test_the_buckets_take_turns():
    plan = made([3] * 80 + [7] * 40).plan(40)
    lengths = [batch.context_length for batch in plan]
    assert Counter(lengths) == {4: 20, 8: 20}
    for half in (lengths[:20], lengths[20:]):
        assert 4 <= half.count(4) <= 16


def test_epochs_have_other_batches_and_not_only_another_order():
    plan = made([2] * 40).plan(30)
    batches = [frozenset(batch.items.tolist()) for batch in plan]
    assert len(set(batches)) == len(batches)
