"""Tests of qanet.cores."""

from qanet.cores import own_cores


def test_cores_are_counted_where_the_system_does_not_tell_whose(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {1, 5, 7})
    assert own_cores() == 3
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert own_cores() == 6
