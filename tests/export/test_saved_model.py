"""Tests of qanet.export.saved_model: what it answers is what the reader answers."""

import json
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from qanet.datasets.features import build_features
from qanet.datasets.squad import Example
from qanet.decoding import decide
from qanet.export import saved_model
from qanet.models.limits import ReadingLimits
from qanet.models.registry import MODELS
from qanet.reader import Reader

QUESTION = "Where does Zoë live?"
CONTEXTS = [
    "Bo’ lives in Rome, Zoë in São Paulo. 東京",
    "one",
    "",
    "\u200b \ufeff",
    # What cannot be composed: that is left to who asks.
    "ROME rome Rome\r\n\tand\x00 Zoq\u0308 Ro\u00adme",
    "Zoë1 lives in Oslo, but Bo’1 lives in 東京. " * 9,
]

# A process with TensorFlow and nothing of ours.
SERVER = """
import json, sys
import tensorflow as tf
answer = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
for line in sys.stdin:
    contexts, questions, top_k = json.loads(line)
    found = answer(
        context=tf.constant(contexts, tf.string),
        question=tf.constant(questions, tf.string),
        top_k=tf.constant(top_k),
    )
    texts = [[t.decode() for t in row] for row in found.pop("answer").numpy()]
    rest = {name: value.numpy().tolist() for name, value in found.items()}
    print(json.dumps(rest | {"answer": texts}))
"""


def from_reader(reader, pairs, top_k):
    """What the reader says, laid out as the signature does."""
    examples = [Example(str(i), q, c, ()) for i, (c, q) in enumerate(pairs)]
    columns = {"answer": [], "start": [], "end": [], "score": []}
    for answers in reader.read(examples, build_features(examples), top_k=top_k):
        decided = decide(answers, reader.threshold)[:top_k]
        rows = [(a.text, a.start, a.end, a.score) for a in decided]
        rows += [("", 0, 0, 0.0)] * (top_k - len(rows))
        for name, values in zip(columns, zip(*rows, strict=True), strict=True):
            columns[name].append(list(values))
    return columns


def check(found, expected):
    for name in ("answer", "start", "end"):
        assert found[name] == expected[name], name
    np.testing.assert_allclose(found["score"], expected["score"], atol=1e-5)


@pytest.fixture(scope="module")
def exported(trained_model, tmp_path_factory):
    directory = tmp_path_factory.mktemp("exported") / "1"
    saved_model.export_saved_model(trained_model, directory)
    return directory


@pytest.fixture(scope="module")
def signatures(exported):
    return tf.saved_model.load(exported).signatures


def test_answers_in_a_process_of_its_own(exported, trained_reader, served):
    pairs = [(context, QUESTION) for context in CONTEXTS]
    pairs += [(CONTEXTS[0], "who?"), (CONTEXTS[5], "東京 Oslo?")]
    requests = [([c for c, _ in pairs], [q for _, q in pairs], 3), ([], [], 2)]
    requests += [(CONTEXTS[:1], [QUESTION], 1000), (CONTEXTS[:1], [""], 1)]

    several, none, all_spans, blank = served(exported, requests)

    check(several, from_reader(trained_reader, pairs, 3))
    assert none == {"answer": [], "start": [], "end": [], "score": []}
    check(all_spans, from_reader(trained_reader, pairs[:1], 1000))
    # A blank question, which the reader refuses, still gives a piece of the context.
    assert blank["answer"][0][0] in CONTEXTS[0]


@pytest.fixture
def served(door, tmp_path):
    """Answers of a process that cannot import our package."""

    def serve(directory, requests):
        script = tmp_path / "server.py"
        script.write_text(SERVER)
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        process = door(script, directory, blocked=["qanet"], input=lines)
        assert process.returncode == 0, process.stderr
        return [json.loads(line) for line in process.stdout.splitlines()]

    return serve


@pytest.mark.parametrize("name", ["trained_model", "doubting_model"])
def test_long_contexts_are_read_in_windows(name, request, monkeypatch):
    """Several windows a context, several batches of windows."""
    trained = request.getfixturevalue(name)
    name = trained.config.model.name
    limits = ReadingLimits(window=20, stride=10)
    monkeypatch.setitem(MODELS, name, replace(MODELS[name], limits=limits))
    monkeypatch.setattr(saved_model, "READING_PAIRS", 3 * 20**2)
    text = " ".join(f"Zoë{i} lives in Rome, Bo’{i} in Oslo." for i in range(12))
    words = text.split()
    contexts = [" ".join(words[:n]) for n in (1, 8, 9, 14, 15, 16, 22, 23, len(words))]
    pairs = [(context, QUESTION) for context in contexts]

    found = saved_model.StringReader(trained).answer(
        *(tf.constant(column) for column in zip(*pairs, strict=True)), tf.constant(4)
    )

    found = {name: value.numpy().tolist() for name, value in found.items()}
    found["answer"] = [[text.decode() for text in row] for row in found["answer"]]
    check(found, from_reader(Reader.of(trained), pairs, 4))


def test_a_word_has_its_own_probability_where_answers_are_words(
    trained_model, monkeypatch
):
    """As in `aoa-cloze`, whose start and end are one logit."""
    name = trained_model.config.model.name
    limits = ReadingLimits(answer=1)
    monkeypatch.setitem(MODELS, name, replace(MODELS[name], limits=limits))
    data = trained_model.config.data.model_copy(update={"answer_limit": 1})
    config = trained_model.config.model_copy(update={"data": data})
    trained = replace(trained_model, config=config)
    pairs = [("Zoë1 lives in Rome.", QUESTION)]

    found = saved_model.StringReader(trained).answer(
        *(tf.constant(column) for column in zip(*pairs, strict=True)), tf.constant(4)
    )

    (expected,) = from_reader(Reader.of(trained), pairs, 4)["score"]
    np.testing.assert_allclose(found["score"][0], expected, rtol=1e-4)


def test_no_answer_is_said(doubting_model, doubting_reader, tmp_path):
    saved_model.export_saved_model(doubting_model, tmp_path / "1")
    read = tf.saved_model.load(tmp_path / "1").signatures["serving_default"]
    pairs = [(context, QUESTION) for context in CONTEXTS]
    texts, questions = (tf.constant(column) for column in zip(*pairs, strict=True))

    def asked(top_k):
        found = read(context=texts, question=questions, top_k=tf.constant(top_k))
        found = {name: value.numpy() for name, value in found.items()}
        answers = [[text.decode() for text in row] for row in found.pop("answer")]
        rest = {name: value.tolist() for name, value in found.items()}
        return rest | {"answer": answers}

    one, several = asked(1), asked(3)

    expected = from_reader(doubting_reader, pairs, 1)
    # Of those that have words, some have an answer and some do not.
    found = [expected["answer"][i][0] for i in (0, 1, 4, 5)]
    assert {bool(text) for text in found} == {True, False}, expected["score"]
    check(one, expected)
    check(several, from_reader(doubting_reader, pairs, 3))


def test_tensors_give_the_logits(signatures, trained_model):
    model = trained_model.model
    rng = np.random.default_rng(3)
    inputs = {}
    for name, tensor in model.input.items():
        length = 9 if name.startswith("context") else 5
        shape = (2, length, *tensor.shape[2:])
        inputs[name] = tf.constant(rng.integers(1, 4, shape), tf.int32)

    found = signatures["tensors"](**inputs)

    expected = model(inputs)
    for name in ("start_logits", "end_logits"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5)


@pytest.mark.parametrize(
    ("contexts", "questions", "top_k", "message"),
    [
        (["a", "b"], ["who?"], 1, "one context a question"),
        (["a"], ["who?"], 0, "top_k must be at least 1"),
        (["a"], ["who?"], 1001, "top_k must be at most 1000"),
        (["a"], ["q " * 1001], 1, "a question has more than 1000 words and signs"),
    ],
)
def test_mistakes_of_a_client_are_named(
    signatures, contexts, questions, top_k, message
):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        signatures["serving_default"](
            context=tf.constant(contexts),
            question=tf.constant(questions),
            top_k=tf.constant(top_k),
        )
