"""Tests of qanet.cores."""

from pathlib import Path

import pytest

from qanet.cores import own_cores


def test_cores_are_counted_where_the_system_does_not_tell_whose(monkeypatch):
    monkeypatch.setattr("qanet.cores.CONTROL_GROUPS", Path("/nowhere"))
    monkeypatch.setattr(
        "os.sched_getaffinity", lambda process: {1, 5, 7}, raising=False
    )
    assert own_cores() == 3
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert own_cores() == 6


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "10000 100000\n"}, 1),
        ({"cpu.max": "900000 100000\n"}, 3),
        ({"cpu.max": "max 100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({}, 3),
        # What is empty, or no number, tells nothing.
        ({"cpu.max": "\n"}, 3),
        ({"cpu.max": "9 0\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "", "cpu/cpu.cfs_period_us": "\n"}, 3),
    ],
)
def test_a_container_has_its_share(monkeypatch, tmp_path, files, cores):
    monkeypatch.setattr(
        "os.sched_getaffinity", lambda process: {1, 5, 7}, raising=False
    )
    monkeypatch.setattr("qanet.cores.CONTROL_GROUPS", tmp_path)
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert own_cores() == cores
