"""Tests of qanet.serving.batching."""

import asyncio
import threading

import pytest

from qanet.serving.batching import Batcher


class Doubler:
    """Doubles numbers, but fails at -1; notes its batches."""

    def __init__(self):
        self.batches = []

    def __call__(self, items):
        self.batches.append(list(items))
        if -1 in items:
            raise ValueError("negative")
        return [2 * item for item in items]


def run(work, talk, batch_size=4, wait=0.02, **options):
    """Runs `talk(batcher)` against a batcher from its start to its stop."""

    async def main():
        batcher = Batcher(work, batch_size, wait, **options)
        batcher.start()
        try:
            return await talk(batcher)
        finally:
            await batcher.stop()

    return asyncio.run(main())


def test_concurrent_items_are_computed_together_and_in_order():
    work = Doubler()

    async def talk(batcher):
        return await asyncio.gather(*(batcher.submit([i, i + 10]) for i in range(3)))

    assert run(work, talk) == [[0, 20], [2, 22], [4, 24]]
    assert work.batches == [[0, 10, 1, 11], [2, 12]]


def test_a_batch_that_is_full_does_not_wait():
    work = Doubler()

    async def talk(batcher):
        return await batcher.submit(range(4))

    assert run(work, talk, wait=3600) == [0, 2, 4, 6]


def test_a_lone_client_does_not_wait():
    async def talk(batcher):
        return [await batcher.submit([i]) for i in range(3)]

    assert run(Doubler(), talk, wait=3600) == [[0], [2], [4]]


def test_among_several_an_item_waits_for_others():
    work = Doubler()

    async def talk(batcher):
        await batcher.submit([0, 1])
        first = asyncio.create_task(batcher.submit([2]))
        for _ in range(9):  # Until the batcher waits.
            await asyncio.sleep(0)
        second = asyncio.create_task(batcher.submit([3]))
        await asyncio.gather(first, second)

    run(work, talk, batch_size=2, wait=3600)
    assert work.batches == [[0, 1], [2, 3]]


def test_where_nobody_comes_an_item_waits_until_the_deadline():
    work = Doubler()

    async def talk(batcher):
        await batcher.submit([0, 1])
        return await batcher.submit([2])

    assert run(work, talk, wait=0.01) == [4]
    assert work.batches == [[0, 1], [2]]


def test_while_one_batch_is_computed_the_next_fills_up():
    work, at_work, go_on = Doubler(), threading.Event(), threading.Event()

    def slow(items):
        at_work.set()
        go_on.wait()
        return work(items)

    async def talk(batcher):
        first = asyncio.create_task(batcher.submit([0]))
        await asyncio.to_thread(at_work.wait)
        others = [asyncio.create_task(batcher.submit([i])) for i in (1, 2, 3)]
        await asyncio.sleep(0)
        go_on.set()
        return await asyncio.gather(first, *others)

    assert run(slow, talk, wait=0) == [[0], [2], [4], [6]]
    assert work.batches == [[0], [1, 2, 3]]


def test_a_failure_reaches_the_guilty_alone():
    work = Doubler()

    async def talk(batcher):
        together = [batcher.submit([item]) for item in (1, -1, 2)]
        results = await asyncio.gather(*together, return_exceptions=True)
        return results + await batcher.submit([5])

    one, failed, two, later = run(work, talk)
    assert (one, two, later) == ([2], [4], 10)
    assert isinstance(failed, ValueError)
    assert work.batches[:4] == [[1, -1, 2], [1], [-1], [2]]


def test_the_other_items_of_a_client_that_was_told_of_a_failure_are_not_computed():
    work = Doubler()

    async def talk(batcher):
        with pytest.raises(ValueError, match="negative"):
            await batcher.submit([-1, 1, 2])
        return await batcher.submit([5])

    assert run(work, talk, batch_size=1) == [10]
    assert work.batches in ([[-1], [5]], [[-1], [1], [5]])


def test_after_a_failure_nobody_is_computed_for_who_went_away():
    work, at_work, go_on = Doubler(), threading.Event(), threading.Event()

    def slow(items):
        at_work.set()
        go_on.wait()
        return work(items)

    async def talk(batcher):
        gone, other, _ = together = [
            asyncio.create_task(batcher.submit([item])) for item in (1, 2, -1)
        ]
        await asyncio.to_thread(at_work.wait)
        gone.cancel()
        await asyncio.wait([gone])
        go_on.set()
        await asyncio.wait(together)
        return await other

    assert run(slow, talk) == [4]
    assert work.batches == [[1, 2, -1], [2], [-1]]


def test_a_batch_weighs_no_more_than_its_capacity():
    work = Doubler()

    async def talk(batcher):
        return await batcher.submit([4, 6, 1, 99, 5, 4, 3])

    found = run(work, talk, batch_size=9, weigh=lambda item: item, capacity=10)
    assert found == [8, 12, 2, 198, 10, 8, 6]
    # In their order; what is too heavy for any batch is computed alone.
    assert work.batches == [[4, 6], [1], [99], [5, 4], [3]]


def test_a_client_that_went_away_is_not_computed_for():
    work = Doubler()

    async def talk(batcher):
        gone = asyncio.create_task(batcher.submit([1]))
        await asyncio.sleep(0)
        gone.cancel()
        return await batcher.submit([2])

    assert run(work, talk) == [4]
    assert work.batches == [[2]]


def test_what_nobody_waits_for_leaves_the_queue():
    at_work, go_on = threading.Event(), threading.Event()

    def slow(items):
        at_work.set()
        go_on.wait()
        return items

    async def talk(batcher):
        first = asyncio.create_task(batcher.submit([0]))
        await asyncio.to_thread(at_work.wait)
        gone, other = (asyncio.create_task(batcher.submit(i)) for i in ([1, 2], [3]))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        waiting = batcher.waiting
        go_on.set()
        return waiting, await first, await other

    assert run(slow, talk) == (1, [0], [3])


def test_stop_finishes_what_was_accepted():
    work = Doubler()

    async def main():
        batcher = Batcher(work, 2, 0.0)
        batcher.start()
        waiting = asyncio.create_task(batcher.submit(range(5)))
        await asyncio.sleep(0)
        await batcher.stop()
        return await waiting

    assert asyncio.run(main()) == [0, 2, 4, 6, 8]


class Pair(Doubler):
    """Doubles where two batches are computed at a time, which none gets past alone."""

    def __init__(self):
        super().__init__()
        self.meeting = threading.Barrier(2, timeout=60)

    def __call__(self, items):
        self.meeting.wait()
        return super().__call__(items)


def test_workers_compute_at_a_time_and_each_item_once():
    async def talk(batcher):
        return await asyncio.gather(*(batcher.submit([i]) for i in range(6)))

    work = Pair()
    found = run(work, talk, batch_size=1, workers=2)
    assert found == [[2 * i] for i in range(6)]
    assert sorted(work.batches) == [[i] for i in range(6)]


def test_each_worker_takes_its_share_of_what_waits():
    work = Pair()
    found = run(work, lambda b: b.submit([0, 1]), batch_size=32, workers=2)
    assert found == [0, 2]
    assert sorted(work.batches) == [[0], [1]]


def test_shares_that_do_not_divide_are_no_further_batch():
    work = Pair()
    found = run(work, lambda b: b.submit([0, 1, 2]), batch_size=32, workers=2)
    assert found == [0, 2, 4]
    assert sorted(map(len, work.batches)) == [1, 2]


def test_one_item_is_news_for_one_of_several_workers():
    async def talk(batcher):
        # Each wakes them all; those that find nothing wait on.
        return [await batcher.submit([i]) for i in range(20)]

    work = Doubler()
    assert run(work, talk, workers=3) == [[2 * i] for i in range(20)]
    assert work.batches == [[i] for i in range(20)]


def test_a_slow_batch_does_not_hold_up_those_of_the_other_worker():
    at_work, go_on = threading.Event(), threading.Event()

    def work(items):
        if 0 in items:
            at_work.set()
            go_on.wait(60)
        return items

    async def talk(batcher):
        slow = asyncio.create_task(batcher.submit([0]))
        await asyncio.to_thread(at_work.wait)
        quick = [await batcher.submit([i]) for i in (1, 2, 3)]
        assert not slow.done()
        go_on.set()
        return [*quick, await slow]

    assert run(work, talk, workers=2) == [[1], [2], [3], [0]]


def test_stop_waits_for_all_workers():
    meeting = threading.Barrier(2, timeout=60)

    def work(items):
        meeting.wait()
        return items

    async def main():
        batcher = Batcher(work, 1, 0.0, workers=2)
        batcher.start()
        waiting = asyncio.create_task(batcher.submit(range(6)))
        await asyncio.sleep(0)
        await batcher.stop()
        return await waiting

    assert asyncio.run(main()) == [*range(6)]
