"""Tests of qanet.serving.metrics, through the application."""

import threading
from dataclasses import replace

from fastapi.testclient import TestClient
from made_apps import Ready, app_of, app_of_many
from prometheus_client.parser import text_string_to_metric_families

from qanet.serving.limits import Limits
from qanet.serving.metrics import Metrics
from qanet.serving.served import Loaded

ASKED = {"questions": ["Who?"], "passages": ["Anna Kov in Rome."]}
ANSWER = "/v1/answer"


def told(client):
    """The metrics' values by their names and the values of their labels, by name."""
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, *dict(sorted(sample.labels.items())).values()): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def test_requests_refusals_and_batches_are_counted():
    with TestClient(app_of(Ready()), raise_server_exceptions=False) as client:
        before = told(client)
        client.post(ANSWER, json=ASKED)
        client.post(ANSWER, json=ASKED | {"questions": ["a", "b", "c"]})
        client.post(ANSWER, json=ASKED | {"questions": []})
        client.post(ANSWER, json=ASKED | {"questions": ["fail"]})
        client.post(ANSWER, content=b"a" * 3_000_000)
        after = told(client)
    assert ("qanet_requests_total", ANSWER) not in before
    assert after["qanet_requests_total", ANSWER] == 5
    refusals = {
        key[1]: count for key, count in after.items() if "qanet_refusals_total" in key
    }
    assert refusals == {"invalid": 1, "internal": 1, "too_large": 1}
    assert after["qanet_answer_seconds_count", ANSWER] == 2
    assert 0 < after["qanet_answer_seconds_sum", ANSWER] < 60
    assert after["qanet_batch_questions_count", "only"] == 2
    assert after["qanet_batch_questions_sum", "only"] == 4
    assert after["qanet_batch_questions_bucket", "1.0", "only"] == 1
    assert after[("process_resident_memory_bytes",)] > 1_000_000


def test_head_of_the_metrics_is_answered():
    with TestClient(app_of(Ready())) as client:
        response = client.head("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=")
    assert int(response.headers["content-length"]) > 0
    assert not response.content


def test_the_queue_is_what_no_thread_has_begun_to_read():
    class Slow(Ready):
        def __init__(self):
            self.at_work, self.go_on = threading.Event(), threading.Event()

        def answer_many(self, *asked):
            self.at_work.set()
            self.go_on.wait()
            return super().answer_many(*asked)

    reader = Slow()
    both = {"quick": Loaded(Ready()), "slow": Loaded(reader)}
    with TestClient(app_of_many(both)) as client:
        asked = ASKED | {"model": "slow", "questions": ["Who?"] * 40}
        ask = threading.Thread(target=lambda: client.post(ANSWER, json=asked))
        ask.start()
        reader.at_work.wait()
        # 32 at a time.
        waiting = told(client)
        reader.go_on.set()
        ask.join()
        done = told(client)
    assert waiting["qanet_waiting_questions", "slow"] == 8
    assert waiting["qanet_waiting_questions", "quick"] == 0
    assert done["qanet_waiting_questions", "slow"] == 0


def test_a_client_cannot_make_labels():
    limits = replace(Limits(), pending=1)
    with TestClient(app_of(Ready(), limits=limits)) as client:
        told(client)
        for path in ("/nowhere", "/v1/answer/", "/V1/ANSWER", "/%00", "/metrics/x"):
            client.get(path)
        client.request("BREW", "/v1/answer")
        client.post(ANSWER, json=ASKED | {"model": "chosen"})
        found = told(client)
    labels = {value for _, *values in found for value in values}
    paths = {value for value in labels if value.startswith("/")}
    assert paths == {"/metrics", ANSWER}
    assert "chosen" not in labels
    assert found["qanet_requests_total", "other"] == 5


def test_applications_count_apart():
    with TestClient(app_of(Ready())) as one, TestClient(app_of(Ready())) as other:
        one.post(ANSWER, json=ASKED)
        assert ("qanet_requests_total", ANSWER) in told(one)
        assert ("qanet_requests_total", ANSWER) not in told(other)


def test_a_refusal_is_no_answer():
    metrics = Metrics()
    metrics.count_answer("/a", 400, 1.0)
    text = metrics.text().decode()
    assert 'qanet_refusals_total{code="bad_request",path="/a"} 1.0' in text
    assert 'qanet_answer_seconds_count{path="/a"}' not in text
