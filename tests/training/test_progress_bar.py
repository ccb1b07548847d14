"""Tests of qanet.training.progress_bar."""

from types import SimpleNamespace

import numpy as np
import pytest
from tqdm import tqdm

from qanet.errors import UserError
from qanet.training import progress_bar
from qanet.training.progress_bar import ProgressBar


@pytest.fixture
def clock(monkeypatch):
    """The bar's clock, to be set by hand."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(
        progress_bar, "time", SimpleNamespace(monotonic=lambda: clock.now)
    )
    return clock


def test_a_round_goes_on_that_another_process_began(clock, capsys):
    with tqdm(total=10) as bar:
        report = ProgressBar(bar, 7)
        report.begin_round([(4, 96)] * 2, steps=3, loss=9.0)
        report.step(1.0)
        clock.now += 0.5
        assert report.wait() == 10.0
        report.show("dev F1", 70.0)
        report.step(float("nan"))
        with pytest.raises(UserError, match=r"at step 9\b"):
            report.wait()
    shown = capsys.readouterr().err
    assert "loss=2.500" in shown
    assert "examples/s=8" in shown


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
@pytest.mark.parametrize("looking", ["at every step", "at the end"])
def test_the_step_of_a_bad_loss_is_counted_from_the_beginning(clock, loss, looking):
    def train(report):
        report.begin_round([(4, 96)] * 5)
        for value in (1.5, loss, loss, loss):
            clock.now += 10.0 if looking == "at every step" else 0.0
            report.step(value)
        report.wait()

    with tqdm(disable=True) as bar:
        report = ProgressBar(bar, 100)
        with pytest.raises(UserError, match=rf"{loss} at step 102\b"):
            train(report)


class Scalar:
    """A number that notes when it is read."""

    def __init__(self, value):
        self.value = value
        self.read = False

    def __array__(self, dtype=None, copy=None):
        self.read = True
        return np.array(self.value, dtype)


def test_losses_are_read_now_and_then_and_the_newest_not_at_all(clock, monkeypatch):
    monkeypatch.setattr(progress_bar.ops, "convert_to_numpy", np.asarray)
    losses = [Scalar(float(i)) for i in range(5)]
    with tqdm(disable=True) as bar:
        report = ProgressBar(bar)
        report.begin_round([(4, 96)] * 5)
        report.step(losses[0])
        report.step(losses[1])
        assert not any(loss.read for loss in losses)
        clock.now += 10.0
        report.step(losses[2])
        assert [loss.read for loss in losses] == [True, True, False, False, False]
        report.step(losses[3])
        report.step(losses[4])
        assert not losses[2].read
        assert report.wait() == 10.0  # their sum
        assert all(loss.read for loss in losses)


def test_progress_bar_shows_rate_loss_and_f1(capsys, clock):
    with tqdm(total=10) as bar:
        report = ProgressBar(bar)
        report.begin_round([(4, 96)] * 5)
        report.step(2.5)
        clock.now += 0.5
        report.step(1.5)
        report.show("dev F1", 61.25)
        report.wait()
        report.show("dev F1", 70.0)
    shown = capsys.readouterr().err
    assert "dev F1=61.2" in shown
    assert "dev F1=70.0" in shown
    assert "loss=2.000" in shown
    assert "examples/s=16" in shown
    assert "2/10" in shown


def test_progress_bar_says_when_a_length_is_compiled(capsys, clock):
    with tqdm(total=10) as bar:
        report = ProgressBar(bar)
        said = []
        for _ in range(2):
            report.begin_round([(4, 96), (4, 96), (4, 160)])
            said.append(bar.desc)
            for _ in range(3):
                report.step(1.0)
                said.append(bar.desc)
            clock.now += 0.5
            report.wait()
    new, old = ("compiling for {} tokens: ".format, "training: ")
    assert said == [new(96), old, new(160), old, old, old, old, old]
