"""Tests of qanet.training.cluster."""

import json

import pytest

from qanet.errors import UserError
from qanet.training.cluster import EXAMPLE, is_first_worker


def cluster(task, **hosts):
    kind, index = task
    return json.dumps({"cluster": hosts, "task": {"type": kind, "index": index}})


@pytest.mark.parametrize(
    ("config", "first"),
    [
        (cluster(("worker", 0), worker=["a:1", "b:1"]), True),
        (cluster(("worker", 1), worker=["a:1", "b:1"]), False),
        (cluster(("chief", 0), chief=["a:1"], worker=["b:1"]), True),
        (cluster(("worker", 0), chief=["a:1"], worker=["b:1"]), False),
        (EXAMPLE, True),
    ],
)
def test_the_chief_or_else_the_first_worker_is_first(monkeypatch, config, first):
    monkeypatch.setenv("TF_CONFIG", config)
    assert is_first_worker() == first


@pytest.mark.parametrize(
    "config",
    [
        None,
        "",
        "{",
        "[]",
        "{}",
        '{"cluster": {"worker": ["a:1"]}}',
        '{"cluster": ["a:1"], "task": {"type": "worker", "index": 0}}',
        cluster(("worker", 2), worker=["a:1", "b:1"]),
        cluster(("ps", 0), worker=["a:1"], ps=["b:1"]),
    ],
)
def test_no_list_of_workers(monkeypatch, config):
    if config is None:
        monkeypatch.delenv("TF_CONFIG", raising=False)
    else:
        monkeypatch.setenv("TF_CONFIG", config)
    with pytest.raises(UserError, match=r"TF_CONFIG=.*multi_worker") as error:
        is_first_worker()
    assert "\n" not in str(error.value)
