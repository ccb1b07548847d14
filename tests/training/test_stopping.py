"""Tests of qanet.training.stopping."""

import signal
import threading
from types import SimpleNamespace

import pytest

from qanet.training.stopping import stops_deferred


class Stopped(KeyboardInterrupt):
    pass


@pytest.fixture
def handled():
    """Signals that Python handles, and those that have been handled."""
    handled = []

    def stop(number, frame):
        handled.append(number)
        raise Stopped

    numbers = signal.SIGINT, signal.SIGTERM
    before = [signal.signal(number, stop) for number in numbers]
    yield SimpleNamespace(numbers=handled, stop=stop)
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def pressed(*numbers, reached, error=None):
    """Raises signals within the context, and then notes which have come."""
    with stops_deferred() as stops:
        for number in numbers:
            signal.raise_signal(number)
        reached.append(stops)
        if error:
            raise error


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_waits_for_the_end(handled, number):
    reached = []
    with pytest.raises(Stopped):
        pressed(number, reached=reached)
    assert reached == [[number]]
    assert handled.numbers == [number]
    assert signal.getsignal(number) is handled.stop


def test_a_second_one_does_not_wait(handled):
    reached = []
    with pytest.raises(Stopped):
        pressed(signal.SIGTERM, signal.SIGINT, reached=reached)
    assert not reached
    assert handled.numbers[0] == signal.SIGINT
    assert signal.getsignal(signal.SIGINT) is handled.stop


def test_without_one_nothing_is_raised_and_all_is_as_before(handled):
    with stops_deferred() as stops:
        pass
    assert not stops
    assert not handled.numbers
    assert signal.getsignal(signal.SIGTERM) is handled.stop


def test_an_error_is_not_hidden(handled):
    """What should be stored was not."""
    with pytest.raises(ValueError, match="full"):
        pressed(signal.SIGINT, reached=[], error=ValueError("full"))
    assert not handled.numbers
    assert signal.getsignal(signal.SIGINT) is handled.stop


def test_what_python_does_not_handle_stays_as_it_is(handled):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with stops_deferred() as stops:
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        signal.raise_signal(signal.SIGINT)
    assert not stops


def test_other_threads_handle_no_signals():
    found = []

    def work():
        with stops_deferred() as stops:
            found.append(stops)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [[]]
