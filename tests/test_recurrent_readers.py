"""BiDAF, SLQA and attention-over-attention, from files to answers."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from tiny_runs import eagerly

from qanet.config import load_preset
from qanet.models.limits import ReadingLimits
from qanet.models.registry import MODELS
from qanet.reader import Reader
from qanet.run import Run
from qanet.serving.explanation import Explainer
from qanet.training.session import train_run

TINY = """
    data.context_limit=32 data.question_limit=8 data.buckets=[32] data.answer_limit=4
    vocabulary.word_width=4 vocabulary.word_min_count=1
    vocabulary.character_min_count=1 vocabulary.characters_per_word=4
    model.width=4 model.units=3 model.character_width=4 model.character_filters=3
    training.steps=2 training.batch_size=4 training.learning_rate=0.01
    training.warmup_steps=1 training.evaluate_every=1 training.evaluation_questions=4
    training.evaluation_batch_size=4
""".split()
QUESTION, CONTEXT = "Where does Zoë7 live?", "Zoë7 lives in São Paulo, Bo’7 in Rome."
LONG = CONTEXT * 12
PAIRS = [(QUESTION, CONTEXT), (QUESTION, LONG)]


@pytest.fixture(scope="module", params=["bidaf", "slqa", "aoa"])
def config(request, tiny_files):
    """Its reader reads long contexts in several windows."""
    name = request.param
    limits = ReadingLimits(window=40, stride=20)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setitem(MODELS, name, replace(MODELS[name], limits=limits))
        yield configured(name, tiny_files)


def configured(name, tiny_files):
    files = [f"data.train={tiny_files.train}", f"data.dev={tiny_files.dev}"]
    return load_preset(name, [*TINY, *files])


@pytest.fixture(scope="module")
def run(config, tmp_path_factory):
    """A finished run."""
    run = Run(tmp_path_factory.mktemp("runs") / config.model.name)
    with eagerly():
        train_run(config, run)
    return run


@pytest.fixture(scope="module")
def trained(run):
    return run.load()


@pytest.fixture(scope="module")
def answers(trained):
    """What the run's reader says of a short and of a long context."""
    return Reader.of(trained).answer_many(PAIRS, top_k=3)


def test_it_answers_with_words_of_the_context(answers):
    for context, some in zip((CONTEXT, LONG), answers, strict=True):
        assert len(some) == 3
        for answer in some:
            assert answer.text
            assert context[answer.start : answer.end] == answer.text


# One for all: it is the loop that goes on.
@pytest.mark.parametrize("config", ["bidaf"], indirect=True)
def test_a_training_that_was_stopped_goes_on_bit_for_bit(
    run, config, tmp_path, uncompiled, ctrl_c
):
    stopped = Run(tmp_path / "stopped")
    with ctrl_c(1):
        train_run(config, stopped)
    train_run(config, stopped, resume=True)
    assert stopped.load_metrics() == run.load_metrics()
    with np.load(run.weights_path) as one, np.load(stopped.weights_path) as other:
        assert one.files == other.files
        for name in one.files:
            np.testing.assert_array_equal(one[name], other[name])


def test_a_saved_model_reads_strings_and_answers_as_the_run_does(
    trained, answers, tmp_path
):
    import tensorflow as tf

    from qanet.export.saved_model import export_saved_model

    export_saved_model(trained, tmp_path / "1")
    read = tf.saved_model.load(tmp_path / "1").signatures["serving_default"]
    found = read(
        context=tf.constant([CONTEXT, LONG]),
        question=tf.constant([QUESTION] * 2),
        top_k=tf.constant(3),
    )
    for row, some in enumerate(answers):
        assert [text.decode() for text in found["answer"][row].numpy()] == [
            answer.text for answer in some
        ]
        scores = [answer.score for answer in some]
        np.testing.assert_allclose(found["score"][row], scores, rtol=1e-3)


def test_an_onnx_file_answers_as_the_run_does(trained, answers, tmp_path):
    from qanet.export.portable import export_onnx

    export_onnx(trained, tmp_path)
    found = Reader.load(tmp_path).answer_many(PAIRS, top_k=3)
    for some, expected in zip(found, answers, strict=True):
        assert [a.text for a in some] == [a.text for a in expected]
        scores = [[answer.score for answer in each] for each in (some, expected)]
        np.testing.assert_allclose(*scores, rtol=1e-3)


def test_the_server_answers_and_its_page_is_told_why(trained, answers):
    from fastapi.testclient import TestClient
    from made_apps import app_of

    several = {"questions": [QUESTION], "passages": [CONTEXT], "top_k": 3}
    one = {"question": QUESTION, "passage": CONTEXT}
    with TestClient(app_of(Reader.of(trained), trained)) as client:
        (found,) = client.post("/v1/answer", json=several).json()["answers"]
        told = client.post("/v1/explain", json=one).json()
    assert [answer["text"] for answer in found] == [a.text for a in answers[0]]
    expected = Explainer.of(trained).explain(QUESTION, CONTEXT)
    np.testing.assert_allclose(told["attention"], expected.attention, atol=1e-3)
    assert np.sum(told["attention"]) > 0


# One for all: what devices share does not depend on the model.
@pytest.mark.parametrize("config", ["bidaf"], indirect=True)
def test_two_devices_train_like_one(run, config, tmp_path, uncompiled):
    two = config.distribution.model_copy(update={"strategy": "mirrored"})
    other = Run(tmp_path / "two")
    train_run(config.model_copy(update={"distribution": two}), other)
    assert len(losses_of(run)) == 2
    np.testing.assert_allclose(losses_of(other), losses_of(run), rtol=1e-4)


def losses_of(run):
    rows = csv.DictReader(run.history_path.read_text().splitlines())
    return [float(row["loss"]) for row in rows]
