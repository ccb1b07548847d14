"""Tests of qanet.serving.server."""

import contextlib
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.client import HTTPConnection
from types import SimpleNamespace

import numpy as np
import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import given, settings
from made_apps import Ready, app_of, app_of_many
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from qanet.decoding import Answer
from qanet.reader import Reader
from qanet.serving.batching import Batcher
from qanet.serving.explanation import Explainer
from qanet.serving.limits import Limits
from qanet.serving.served import Loaded
from qanet.text.tokenizer import token_spans
from qanet.text.vocabulary import RESERVED, Vocabulary

LIMITS = Limits(
    body_bytes=6000,
    passages=3,
    questions=3,
    pairs=6,
    question_tokens=20,
    tokens=200,
    explained_tokens=40,
    top_k=4,
    answer_tokens=9,
    answer_characters=5000,
    pending=2,
)
ASKED = {"questions": ["Who?"], "passages": ["Anna Kov in Rome."]}


@pytest.fixture(scope="module")
def client(trained_model, trained_reader):
    with TestClient(app_of(trained_reader, trained_model, LIMITS)) as client:
        yield client


def post(client, content, type="application/json"):
    headers = {"Content-Type": type} if type else {}
    return client.post("/v1/answer", content=content, headers=headers)


def fields(answers):
    names = ("text", "passage", "start", "end", "score")
    return [{name: getattr(a, name) for name in names} for a in answers]


def check_error(response, status, code, *words):
    assert response.status_code == status
    (body,) = response.json().values()
    assert body.keys() == {"code", "message"}
    assert body["code"] == code
    for word in words:
        assert word in body["message"]


def test_answers_are_those_of_the_reader(client, trained_reader):
    questions = ["Where does Zoë live?", "Who?"]
    passages = ["Zoë lives in São Paulo.", "東京 𝒳"]
    body = {"questions": questions, "passages": passages}

    response = client.post("/v1/answer", json=body | {"top_k": 4})
    short = client.post("/v1/answer", json=body | {"top_k": 4, "max_answer_tokens": 1})

    for answered, limit in ((response, None), (short, 1)):
        assert answered.status_code == 200
        expected = trained_reader.answer_many(
            [(q, passages) for q in questions], 4, limit
        )
        found = answered.json()["answers"]
        for some, wanted in zip(found, map(fields, expected), strict=True):
            for one, other in zip(some, wanted, strict=True):
                score = pytest.approx(other["score"], abs=1e-5)
                assert one == other | {"score": score}
                passage = passages[one["passage"]]
                assert passage[one["start"] : one["end"]] == one["text"]


def test_one_answer_by_default(client):
    ((answer,),) = client.post("/v1/answer", json=ASKED).json()["answers"]
    assert answer["text"] in ASKED["passages"][0]


def test_explanation_is_that_of_the_reader_s_model(client, trained_reader):
    asked = {"question": "Where does Zoë live?", "passage": "Zoë 𝒳 lives in Rome."}

    told = client.post("/v1/explain", json=asked).json()

    assert told["passage_tokens"] == [list(s) for s in token_spans(asked["passage"])]
    assert told["question_tokens"] == [list(s) for s in token_spans(asked["question"])]
    (best,) = trained_reader.answer_many([(asked["question"], asked["passage"])], 99)
    by_place = {(answer.start, answer.end): answer.score for answer in best}
    # A span's score is the product of both, but for those that are not allowed.
    products = {
        (first[0], last[1]): start * end
        for first, start in zip(told["passage_tokens"], told["start"], strict=True)
        for last, end in zip(told["passage_tokens"], told["end"], strict=True)
        if (first[0], last[1]) in by_place
    }
    total = sum(products.values())
    for place, score in by_place.items():
        assert products[place] / total == pytest.approx(score, abs=1e-3)
    attention = np.array(told["attention"])
    assert attention.shape == (6, 5)
    np.testing.assert_allclose(attention.sum(axis=1), 1, atol=1e-3)


def test_a_request_names_its_reader(
    trained_model, trained_reader, doubting_model, doubting_reader
):
    both = {
        "sure": Loaded(trained_reader, trained_model, digest="d"),
        "doubting": Loaded(doubting_reader, doubting_model),
    }
    asked = ASKED | {"top_k": 50}
    explained = {"question": "Who?", "passage": ASKED["passages"][0]}
    with TestClient(app_of_many(both)) as client:
        listed = client.get("/v1/models").json()["models"]
        assert [one.pop("model") for one in listed] == ["sure", "doubting"]
        assert [one["no_answer"] for one in listed] == [False, True]
        assert [one["digest"] for one in listed] == ["d", ""]
        assert client.get("/v1/model").json() == listed[0]
        for name, doubts in (({}, False), ("sure", False), ("doubting", True)):
            named = {"model": name} if name else {}
            (found,) = client.post("/v1/answer", json=asked | named).json()["answers"]
            assert ("" in [answer["text"] for answer in found]) == doubts
            told = client.post("/v1/explain", json=explained | named).json()
            # Of the one that doubts a part is left for no answer.
            assert (sum(told["start"]) < 0.99) == doubts
        for address, body in (("answer", asked), ("explain", explained)):
            refused = client.post(f"/v1/{address}", json=body | {"model": "x"})
            check_error(refused, 422, "invalid", "model", "/v1/models")


def test_a_reader_of_which_only_the_logits_are_known(trained_reader):
    """It answers, and does not say why."""
    asked = {"question": "Where does Zoë live?", "passage": "Zoë lives in Rome."}
    with TestClient(app_of(trained_reader)) as client:
        assert client.post("/v1/answer", json=ASKED).status_code == 200
        explained = client.post("/v1/explain", json=asked)
        assert client.get("/v1/model").json()["parameters"] is None
    check_error(explained, 404, "not_found", "does not tell why")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"passage": "a " * 41}, ["passage", "40 words"]),
        ({"question": "a " * 21}, ["question", "20 words"]),
    ],
)
def test_explanation_of_what_is_too_long(client, change, words):
    asked = {"question": "Who?", "passage": "a"} | change
    response = client.post("/v1/explain", json=asked)
    check_error(response, 422, "invalid", *words)


def test_what_would_not_fit_into_memory_is_refused(trained_model, trained_reader):
    """By the limits that a server has."""
    long = "q " * 2000
    with TestClient(app_of(trained_reader, trained_model)) as client:
        asked = client.post("/v1/answer", json=ASKED | {"questions": ["Who?", long]})
        explained = client.post("/v1/explain", json={"question": long, "passage": "a"})
    check_error(asked, 422, "invalid", "questions.1", "1000 words and signs")
    check_error(explained, 422, "invalid", "question", "1000 words and signs")


def test_where_shapes_are_compiled_few_are_read(trained_model, monkeypatch):
    texts = [("Who?", "Zoë lives in Rome."), ("Who lives there?", "Zoë lives.")]
    expected = [Explainer.of(trained_model).explain(*text) for text in texts]
    monkeypatch.setattr("qanet.models.prediction.any_shape", lambda model: None)
    explainer, seen = Explainer.of(trained_model), []
    predict = explainer.predict

    def watched(inputs):
        seen.append({name: array.shape for name, array in inputs.items()})
        return predict(inputs)

    explainer.predict = watched
    found = [explainer.explain(*text) for text in texts]
    assert seen[0] == seen[1]
    for one, other in zip(found, expected, strict=True):
        for name, values in vars(one).items():
            np.testing.assert_allclose(values, getattr(other, name), atol=2e-4)


def test_everything_is_compiled_before_the_first_request(trained_model, monkeypatch):
    layer, traced = trained_model.model.get_layer("embedding"), []
    call = layer.call
    monkeypatch.setattr(
        layer, "call", lambda *a, **k: traced.append(1) or call(*a, **k)
    )
    reader = Reader.of(trained_model, as_they_come=True)
    with TestClient(app_of(reader, trained_model)) as client:
        # Of the context and of the question, by each of the two.
        assert len(traced) == 4
        asked = {"question": "Where does Zoë live?", "passage": "Zoë lives in Rome."}
        assert client.post("/v1/explain", json=asked).status_code == 200
        assert client.post("/v1/answer", json=ASKED).status_code == 200
    assert len(traced) == 4


def test_the_page_loads_nothing_from_elsewhere(client):
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    for name in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        if name != "data:,":
            assert client.get(f"/{name}").status_code == 200
    assert client.get("/docs").status_code == 404


@pytest.mark.parametrize("path", ["/", "/page.css", "/page.js"])
def test_a_browser_asks_for_the_page_anew_and_trusts_its_types(client, path):
    headers = client.get(path).headers
    assert headers["cache-control"] == "no-cache"
    assert headers["x-content-type-options"] == "nosniff"


def test_no_answer_is_an_empty_one(doubting_model, doubting_reader):
    passage = "Zoë lives in São Paulo."
    asked = {"question": "Where does Bo’ live?", "passage": passage}
    body = {"questions": [asked["question"]], "passages": [passage], "top_k": 50}
    app = app_of(doubting_reader, doubting_model)

    with TestClient(app) as client:
        (found,) = client.post("/v1/answer", json=body).json()["answers"]
        told = client.post("/v1/explain", json=asked).json()
        model = client.get("/v1/model").json()

    (none,) = [answer for answer in found if not answer["text"]]
    assert (none["passage"], none["start"], none["end"]) == (0, 0, 0)
    expected = doubting_reader.answer(asked["question"], passage, top_k=50)
    assert [answer["text"] for answer in found] == [a.text for a in expected]
    assert model["no_answer"]
    assert model["threshold"] == doubting_reader.threshold
    # What is missing from 1 is the probability of no answer.
    shares = 1 - np.array([sum(told["start"]), sum(told["end"])])
    assert (shares > 0.01).all()
    assert len(told["start"]) == len(told["end"]) == 6


def test_model_and_health(client, trained_model):
    told = client.get("/v1/model").json()
    assert not told["no_answer"]
    assert told["threshold"] is None
    assert told["parameters"] == trained_model.model.count_params()
    assert told["max_answer_tokens"] == 4
    assert told["limits"]["pairs"] == LIMITS.pairs
    assert client.get("/v1/models").json() == {"models": [told | {"model": "only"}]}
    assert client.get("/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"questions": []}, ["questions"]),
        ({"questions": "Who?"}, ["questions"]),
        ({"questions": [" \u200b"]}, ["questions.0", "blank"]),
        ({"passages": ["a", "\ud800"]}, ["passages.1", "surrogate"]),
        ({"passages": ["a", None]}, ["passages.1"]),
        ({"top_k": 0}, ["top_k"]),
        ({"top_k": True}, ["top_k"]),
        ({"top_k": 5}, ["top_k", "5", "4"]),
        ({"max_answer_tokens": 10}, ["max_answer_tokens", "9"]),
        (
            {"questions": ["a"] * 3, "passages": ["b", "c" * 417], "top_k": 4},
            ["questions times top_k times characters", "5004", "5000"],
        ),
        ({"passages": ["a"] * 4}, ["passages", "4", "3"]),
        ({"questions": ["a"] * 4}, ["questions", "4", "3"]),
        ({"questions": ["a"] * 3, "passages": ["b"] * 3}, ["times", "9", "6"]),
        ({"questions": ["a", "b " * 21]}, ["questions.1", "20 words"]),
        ({"questions": ["a"] * 3, "passages": ["b " * 66]}, ["times", "200 words"]),
        (
            {"questions": ["a " * 20] * 2, "passages": ["b " * 28] * 3},
            ["times", "200 words"],
        ),
        ({"temperature": 1}, ["temperature"]),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_named(client, change, words):
    response = post(client, json.dumps(ASKED | change))
    check_error(response, 422, "invalid", *words)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"[" * 5000,
        b'{"top_k": ' + b"9" * 5000 + b"}",
        b"[]",
        b"3",
        b"null",
    ],
    ids=lambda body: repr(body[:12]),
)
@pytest.mark.parametrize("address", ["/v1/answer", "/v1/explain"])
def test_a_body_that_is_no_request(client, address, body):
    headers = {"Content-Type": "application/json"}
    response = client.post(address, content=body, headers=headers)
    check_error(response, 400, "bad_request")
    assert response.json()["error"]["message"] == "the body is no JSON object"


@pytest.mark.parametrize(
    "path", ["/", "/page.css", "/page.js", "/healthz", "/v1/model", "/v1/models"]
)
def test_head_is_answered_as_get_is_but_for_the_body(address, path):
    host = address.removeprefix("http://")
    got, headed = [], []
    for method, answer in (("GET", got), ("HEAD", headed)):
        with contextlib.closing(HTTPConnection(host, timeout=60)) as connection:
            connection.request(method, path)
            response = connection.getresponse()
            answer += [response.status, response.headers["content-length"]]
            answer.append(len(response.read()))
    assert headed == [200, got[1], 0]
    assert got[2] == int(got[1])


@pytest.mark.parametrize(
    "type",
    [
        "",
        "text/plain",
        "text/json",
        "application/jsonfoo",
        "application/x-www-form-urlencoded",
        "text/plain; charset=json",
    ],
)
def test_a_body_of_another_type(client, type):
    response = post(client, json.dumps(ASKED), type)
    check_error(response, 415, "unsupported_media_type", "application/json")


@pytest.mark.parametrize(
    "type",
    ["Application/JSON", "application/json; charset=utf-8", "application/vnd.a+json"],
)
def test_a_type_may_be_written_otherwise(client, type):
    assert post(client, json.dumps(ASKED), type).status_code == 200
    check_error(post(client, json.dumps(ASKED | {"a": 1}), type), 422, "invalid", "a")
    check_error(post(client, "{", type), 400, "bad_request")


def test_a_body_that_is_too_large(client):
    large = json.dumps(ASKED | {"passages": ["a" * LIMITS.body_bytes]})
    response = post(client, large)
    check_error(response, 413, "too_large", "6000 bytes")
    # Also where its size is not told before.
    response = post(client, iter([large.encode()] * 2))
    check_error(response, 413, "too_large")


def test_other_addresses_and_methods(client):
    check_error(client.get("/nowhere"), 404, "not_found")
    # Not sent on to the host that the request names.
    check_error(client.get("/healthz/", headers={"Host": "a"}), 404, "not_found")
    check_error(client.post("/nowhere", json=ASKED), 404, "not_found")
    check_error(client.get("/v1/answer"), 405, "method_not_allowed")
    for path in ("/", "/healthz", "/metrics", "/v1/model", "/v1/models"):
        refused = client.post(path)
        check_error(refused, 405, "method_not_allowed")
        assert set(refused.headers["allow"].split(", ")) == {"GET", "HEAD"}


def test_a_part_of_the_page_cannot_be_asked_for(client):
    """So no refusal of such a request has a shape of its own."""
    whole = client.get("/page.js")
    assert whole.headers["content-type"] == "text/javascript; charset=utf-8"
    for part in ("bytes=0-1", "bytes=99999999-", "bytes=a-b"):
        found = client.get("/page.js", headers={"Range": part})
        assert (found.status_code, found.content) == (200, whole.content)


class Slow:
    """A reader whose answers wait; notes how many it was asked at a time."""

    vocabulary = Vocabulary([*RESERVED], [*RESERVED], 1)
    attends = False

    def __init__(self):
        self.go_on = threading.Event()
        self.at_work = threading.Event()
        self.asked = []

    def answer(self, question, context):
        return Answer("", 0, 0, 0.0)

    def answer_many(self, pairs, top_k, max_answer_tokens):
        self.asked.append(len(pairs))
        self.at_work.set()
        self.go_on.wait()
        if "fail" in [question for question, _ in pairs]:
            raise RuntimeError("secret")
        return [[Answer(question, 0, 1, 1.0)] for question, _ in pairs]


def test_too_many_at_a_time_are_refused_and_the_others_finished():
    reader, accepted = Slow(), []
    with TestClient(app_of(reader, limits=replace(LIMITS, pending=1))) as client:
        ask = threading.Thread(
            target=lambda: accepted.append(client.post("/v1/answer", json=ASKED))
        )
        ask.start()
        reader.at_work.wait()
        refused = client.post("/v1/answer", json=ASKED)
        check_error(refused, 429, "too_many_requests")
        assert refused.headers["Retry-After"] == "1"
        # Asking how it is still works.
        assert client.get("/healthz").status_code == 200
        reader.go_on.set()
        ask.join()
        assert client.post("/v1/answer", json=ASKED).status_code == 200
    assert [response.status_code for response in accepted] == [200]


def test_what_takes_too_long_is_given_up():
    reader = Slow()
    with TestClient(app_of(reader, limits=replace(LIMITS, seconds=0.05))) as client:
        for _ in range(2):
            late = client.post("/v1/answer", json=ASKED)
            check_error(late, 503, "overloaded", "0.05 seconds")
            assert late.headers["Retry-After"] == "1"
        reader.go_on.set()
    # The second was never begun.
    assert reader.asked == [1]


def test_counting_what_is_asked_takes_of_the_same_time():
    go_on = threading.Event()
    reader = Ready()

    def count(text, most):
        go_on.wait()
        return 1

    reader.vocabulary = SimpleNamespace(count=count, unit="words")
    with TestClient(app_of(reader, limits=replace(LIMITS, seconds=0.05))) as client:
        waking = threading.Timer(10, go_on.set)
        waking.start()
        late = client.post("/v1/answer", json=ASKED)
        go_on.set()
        waking.cancel()
        check_error(late, 503, "overloaded", "0.05 seconds")


def test_a_failure_tells_the_client_nothing_of_the_inside(caplog):
    reader = Slow()
    reader.go_on.set()
    app = app_of(reader, limits=LIMITS)
    with TestClient(app, raise_server_exceptions=False) as client:
        failed = client.post("/v1/answer", json=ASKED | {"questions": ["fail"]})
        check_error(failed, 500, "internal")
        assert "secret" not in failed.text
        assert "secret" in caplog.text
        assert client.post("/v1/answer", json=ASKED).status_code == 200


def ask_together(client, reader, bodies, monkeypatch):
    """The answers to requests that wait while a first one is being read."""
    submitted, submit = threading.Semaphore(0), Batcher.submit

    def submit_noted(batcher, items):
        submitted.release()
        return submit(batcher, items)

    monkeypatch.setattr(Batcher, "submit", submit_noted)
    reader.at_work.clear()
    reader.go_on.clear()
    with ThreadPoolExecutor(1 + len(bodies)) as threads:
        threads.submit(client.post, "/v1/answer", json=ASKED)
        reader.at_work.wait()
        others = [threads.submit(client.post, "/v1/answer", json=b) for b in bodies]
        for _ in range(1 + len(bodies)):
            submitted.acquire()
        reader.go_on.set()
        return [other.result() for other in others]


def test_a_failure_does_not_reach_the_neighbours(monkeypatch):
    reader = Slow()
    app = app_of(reader, limits=replace(LIMITS, pending=9))
    with TestClient(app, raise_server_exceptions=False) as client:
        bodies = [ASKED | {"questions": [text]} for text in ("a", "fail", "b")]
        responses = ask_together(client, reader, bodies, monkeypatch)
    assert reader.asked == [1, 3, 1, 1, 1]
    assert [response.status_code for response in responses] == [200, 500, 200]
    assert responses[2].json()["answers"][0][0]["text"] == "b"


def test_a_batch_costs_no_more_than_one_request_may(monkeypatch):
    reader = Slow()
    with TestClient(app_of(reader, limits=replace(LIMITS, pending=9))) as client:
        bodies = [{"questions": ["a"], "passages": ["b " * 99]}] * 3
        responses = ask_together(client, reader, bodies, monkeypatch)
    assert [response.status_code for response in responses] == [200] * 3
    # Of 100 words each.
    assert reader.asked == [1, 2, 1]


def test_questions_with_equal_settings_are_read_together():
    reader = Slow()
    reader.go_on.set()
    with TestClient(app_of(reader, limits=LIMITS)) as client:
        client.post("/v1/answer", json=ASKED | {"questions": ["a", "b", "c"]})
    assert reader.asked == [3]


def test_keeps_to_its_own_description(address):
    schema = schemathesis.openapi.from_url(
        f"{address}/openapi.json", wait_for_schema=60
    )
    operations = [operation.ok() for operation in schema.get_all_operations()]
    assert len(operations) == 5
    for operation in operations:

        @settings(max_examples=20, deadline=None, derandomize=True)
        @given(operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
        def check_mistakes(case):
            case.call_and_validate()

        @settings(max_examples=20, deadline=None, derandomize=True)
        @given(operation.as_strategy())
        def check_requests(case):
            # Blank texts and numbers above the limits are refused, which the
            # description tells in words alone.
            case.call_and_validate(excluded_checks=[positive_data_acceptance])

        check_requests()
        if operation.method == "post":
            check_mistakes()
