"""Tests of qanet.training.loop that need no reader; test_trainer has the others."""

import signal
from types import SimpleNamespace

import numpy as np
import pytest
from made_training import small_learner

from qanet.datasets.plans import PlannedBatch
from qanet.errors import UserError
from qanet.learning_config import DistributionConfig
from qanet.run import Run
from qanet.training import loop as loop_module
from qanet.training.distribution import make_distribution
from qanet.training.loop import Loop, Task


@pytest.fixture
def clock(monkeypatch):
    """The loop's clock, to be set by hand."""
    clock = SimpleNamespace(now=0.0)
    monotonic = SimpleNamespace(monotonic=lambda: clock.now)
    monkeypatch.setattr(loop_module, "time", monotonic)
    return clock


def looped(directory, measure, train, plan, flops=None, **settings):
    """A loop whose steps are those of `train`."""
    learner = small_learner(steps=len(plan), **settings)
    task = Task(
        learner,
        maker=None,
        plan=plan,
        measure=measure,
        score=lambda measured: measured["score"],
        headline=("score", "score"),
        flops=flops,
    )
    distribution = make_distribution(DistributionConfig())
    loop = Loop(task, learner.config, Run(directory / "run"), distribution)
    loop.train = train
    return loop


@pytest.mark.parametrize("score", [np.nan, np.inf])
def test_a_score_that_is_no_number_stops_the_training(tmp_path, score):
    loop = looped(
        tmp_path,
        lambda: {"score": score},
        lambda maker, plan: ((np.float32(1), np.float32(1)) for _ in plan),
        [PlannedBatch(np.arange(4), 5, 3)],
    )
    with pytest.raises(UserError, match=r"step 1: .*lower training\.learning_rate"):
        loop.fit()
    assert not loop.run.weights_path.exists()


def test_the_figures_of_the_history(tmp_path, clock):
    """Two steps of half a second, and a measurement of a hundred seconds."""

    def measure():
        clock.now += 100.0
        return {"score": 7.0}

    def train(maker, plan):
        for loss in (1.0, 3.0):
            clock.now += 0.5
            yield np.float32(loss), np.float32(0.25)

    loop = looped(
        tmp_path,
        measure,
        train,
        [PlannedBatch(np.arange(4), 5, 3)] * 2,
        flops=lambda batch: 3_000_000_000,
        evaluate_every=2,
        checkpoint_every=2,
    )
    loop.fit()
    (row,) = loop.progress.history
    assert row == {
        "step": 2,
        "examples": 8,
        "seconds": 101.0,
        "steps_per_second": 2.0,
        "examples_per_second": 8.0,
        "model_gflops": 6.0,
        "learning_rate": pytest.approx(0.1),
        "gradient_norm": 0.25,
        "loss": 2.0,
        "score": 7.0,
    }


def test_the_speed_of_a_round_is_of_all_its_steps_alone(tmp_path, clock):
    """Rounds of two stretches and batches of two sizes; the second has slower steps."""
    taken = []

    def train(maker, plan):
        for batch in plan:
            taken.append(batch)
            clock.now += 0.5 if len(taken) <= 4 else 1.0
            yield np.float32(1), np.float32(1)

    loop = looped(
        tmp_path,
        lambda: {"score": 1.0},
        train,
        [PlannedBatch(np.arange(size), 5, 3) for size in [4, 4, 4, 8] * 2],
        evaluate_every=4,
        checkpoint_every=2,
    )
    loop.fit()
    rows = loop.progress.history
    assert [row["steps_per_second"] for row in rows] == [2.0, 1.0]
    assert [row["examples_per_second"] for row in rows] == [10.0, 5.0]


def test_patience_begins_anew_with_each_better_score(tmp_path):
    scores = iter([1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 0.0, 9.0])
    loop = looped(
        tmp_path,
        lambda: {"score": next(scores)},
        lambda maker, plan: ((np.float32(1), np.float32(1)) for _ in plan),
        [PlannedBatch(np.arange(4), 5, 3)] * 8,
        evaluate_every=1,
        patience=2,
    )
    loop.fit()
    assert (loop.progress.step, loop.progress.best_score) == (7, 3.0)


@pytest.mark.parametrize(
    ("step", "settings", "measured"),
    [
        (6, {}, [4, 8]),
        # Rounds were made shorter: the open one ends at once.
        (7, {"evaluate_every": 2}, [4, 7, 8]),
        # There are fewer steps: the open round is the last, or beyond the end.
        (6, {"steps": 6}, [4, 6]),
        (7, {"steps": 6}, [4]),
    ],
)
def test_settings_may_change_within_a_round(
    tmp_path, ctrl_c, caplog, step, settings, measured
):
    caplog.set_level("INFO")
    loop = looped(
        tmp_path,
        lambda: {"score": 1.0},
        lambda maker, plan: ((np.float32(1), np.float32(1)) for _ in plan),
        [PlannedBatch(np.arange(4), 5, 3)] * 8,
        evaluate_every=4,
    )
    loop.resume()
    with ctrl_c(step):
        loop.fit()
    loop.resume()
    assert caplog.messages == [
        "there is no checkpoint yet: starting at the first step",
        f"resumed at step {step}",
    ]
    assert loop.progress.step == step
    loop.config = loop.config.model_copy(update=settings)
    loop.fit()
    rows = loop.progress.history
    assert [row["step"] for row in rows] == measured
    assert [row["loss"] for row in rows] == [1.0] * len(rows)
    assert [row["examples"] for row in rows] == [4 * count for count in measured]


def test_a_stop_that_somebody_else_takes_back_loses_no_step(tmp_path):
    taken = []

    def train(maker, plan):
        for _ in plan:
            taken.append(len(taken))
            if len(taken) == 2:
                signal.raise_signal(signal.SIGINT)
            yield np.float32(len(taken)), np.float32(1)

    plan = [PlannedBatch(np.arange(4), 5, 3)] * 4
    loop = looped(tmp_path, lambda: {"score": 1.0}, train, plan, evaluate_every=4)
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        loop.fit()
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(taken) == 4
    (row,) = loop.progress.history
    assert (row["step"], row["examples"], row["loss"]) == (4, 16, 2.5)
