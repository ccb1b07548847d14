"""Tests of qanet.training.bilm_pretrainer, and of what it trains."""

import csv
import json
import os
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from made_bilm import SMALL
from tiny_runs import eagerly

from qanet.errors import UserError
from qanet.frozen import open_encoder
from qanet.models.bilm import build_bilm, build_language_model
from qanet.models.elmo_weights import read_options, read_weights
from qanet.pretraining.bilm_batches import SentenceBatches
from qanet.pretraining.config import BiLMPretrainingConfig
from qanet.pretraining.run import BiLMRun
from qanet.pretraining.texts import read_documents, split_held_out
from qanet.pretraining.word_vocabulary import WordVocabulary
from qanet.settings import configure
from qanet.training import bilm_pretrainer
from qanet.training.bilm_pretrainer import perplexity, pretrain_bilm, split_words
from qanet.training.distribution import make_distribution
from qanet.weights import saved_variables

WORDS = "one two three four five six seven eight".split()
SETTINGS = """
    data.held_out=0.2 training.buckets=[8] training.batch_tokens=64
    training.samples=8 training.learning_rate=0.01 training.warmup_steps=1
    training.steps=4 training.evaluate_every=2
""".split()


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Documents whose every word follows from the one before it."""
    documents = [
        "\n".join(" ".join(WORDS[(begin + i) % 8] for i in range(n)) for n in (4, 6, 8))
        for begin in range(24)
    ]
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n\n".join(documents))
    return path


def configured(text, *overrides):
    values = {"data": {"text": [str(text)]}, "model": SMALL}
    return configure(BiLMPretrainingConfig, values, [*SETTINGS, *overrides], "test")


def history_of(run):
    return list(csv.DictReader(run.history_path.read_text().splitlines()))


@pytest.fixture(scope="module")
def short(text, tmp_path_factory):
    """A short training."""
    run = BiLMRun(tmp_path_factory.mktemp("short") / "run")
    with eagerly():
        metrics = pretrain_bilm(configured(text), run)
    return run, metrics


def test_the_best_weights_are_stored_as_public_ones(short, text):
    run, metrics = short
    assert json.loads(run.metrics_path.read_text()) == metrics
    rows = history_of(run)
    best = min(rows, key=lambda row: float(row["perplexity"]))
    assert metrics == {
        "step": int(best["step"]),
        "perplexity": float(best["perplexity"]),
    }
    assert float(rows[1]["perplexity"]) < float(rows[0]["perplexity"])
    assert read_options(run.encoder_directory) == run.load_config().model
    encoder = open_encoder(run.encoder_directory, 3)
    (vectors,) = encoder.encode(["one two"], [np.array([(0, 3), (4, 7)])])
    assert vectors.shape == (2, 3, 8)
    assert np.isfinite(vectors).all()
    assert set(run.words_path.read_text().split()) == {*WORDS, "<S>", "</S>", "<UNK>"}


def test_the_encoder_has_the_best_weights_not_the_last(
    text, tmp_path, monkeypatch, uncompiled
):
    measured = iter([2.0, 3.0])
    monkeypatch.setattr(bilm_pretrainer, "perplexity", lambda *_: next(measured))
    run = BiLMRun(tmp_path / "run")
    config = configured(text, "training.steps=2", "training.evaluate_every=1")
    assert pretrain_bilm(config, run) == {"step": 1, "perplexity": 2.0}
    stored = build_bilm(config.model)
    read_weights(stored, run.encoder_directory)
    with np.load(run.weights_path) as best:
        for name, variable in saved_variables(stored).items():
            np.testing.assert_array_equal(np.array(variable), best[name], name)


def test_what_is_measured_is_what_is_held_out(short, text):
    run, metrics = short
    config = configured(text)
    vocabulary = WordVocabulary.load(run.words_path)
    documents = read_documents(config.data.text)
    _, held_out = split_held_out(documents, config.data.held_out, 1)
    batches = SentenceBatches(split_words(held_out), vocabulary, config.training)
    model = build_language_model(config.model, len(vocabulary))
    run.load_weights(model)
    found = perplexity(lambda inputs: model(inputs), batches)
    assert found == pytest.approx(metrics["perplexity"], rel=1e-4)


@pytest.mark.skipif(os.name != "posix", reason="there are no such locks")
def test_nothing_is_read_where_another_training_is_at_work(text, tmp_path):
    run = BiLMRun(tmp_path / "run")
    with run.held(), pytest.raises(UserError, match="another process"):
        pretrain_bilm(configured(text), run)


def test_nothing_is_learned_from_what_is_held_out(tmp_path):
    words = [f"own{number}" for number in range(12)]
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join(f"one {word} two" for word in words))
    config = configured(path)
    documents = read_documents(config.data.text)
    train, held_out = map(
        split_words, split_held_out(documents, config.data.held_out, 1)
    )
    trained_on = {"one", "two", *(word for _, word, _ in train)}
    assert len(trained_on) == 2 + len(words) - len(held_out)
    distribution = make_distribution(config.distribution)
    loop, vocabulary = bilm_pretrainer._make_loop(
        config, BiLMRun(tmp_path / "run"), False, distribution
    )
    assert {*vocabulary.words} == {"<S>", "</S>", "<UNK>", *trained_on}
    # What the vocabulary does not have would be unknown there.
    read = {
        vocabulary.words[number]
        for batch in loop.task.plan
        for number in loop.task.maker.inputs(batch)["words"].flat
    }
    assert read == {"<S>", "</S>", *trained_on}


def test_a_perplexity_that_no_number_holds_is_told():
    batch = {name: np.full((1, 2), 800.0) for name in ("next", "previous")}
    batches = SimpleNamespace(
        reading=lambda: [None],
        inputs=lambda batch: {},
        targets=lambda batch: {"real": np.ones((1, 2))},
    )
    with pytest.raises(UserError, match=r"held-out loss is 800; .*learning_rate"):
        bilm_pretrainer.perplexity(lambda inputs: batch, batches)


def test_a_training_that_was_stopped_goes_on_bit_for_bit(
    short, text, tmp_path, uncompiled, ctrl_c
):
    run = BiLMRun(tmp_path / "run")
    with ctrl_c(3):
        pretrain_bilm(configured(text), run)
    assert not run.encoder_directory.exists()
    pretrain_bilm(run.load_config(), run, resume=True)
    with (
        np.load(run.weights_path) as one,
        np.load(short[0].weights_path) as other,
    ):
        assert one.files == other.files
        for name in one.files:
            np.testing.assert_array_equal(one[name], other[name], name)
    for column in ("step", "loss", "perplexity"):
        rows = [[row[column] for row in history_of(r)] for r in (run, short[0])]
        assert rows[0] == rows[1]


@pytest.mark.parametrize(("strategy", "rows"), [("none", 5), ("mirrored", 4)])
def test_devices_have_equal_shares_of_a_batch(text, tmp_path, strategy, rows):
    strategy = f"distribution.strategy={strategy}"
    config = configured(text, "training.batch_tokens=40", strategy)
    distribution = make_distribution(config.distribution)
    with distribution.scope():
        run = BiLMRun(tmp_path / "run")
        loop, _ = bilm_pretrainer._make_loop(config, run, False, distribution)
    assert {len(batch.items) for batch in loop.task.plan} == {rows}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("training.buckets=[8,4]", "buckets must rise"),
        ("training.buckets=[]", "buckets must rise"),
        ("training.batch_tokens=7", "batch_tokens=7 is less than the last bucket"),
        ("model.projection=100", "must be more than projection"),
        ("training.samples=3", r"training\.samples=3"),
    ],
)
def test_settings_that_do_not_go_together(text, tmp_path, setting, message):
    with pytest.raises(UserError, match=message):
        pretrain_bilm(configured(text, setting), BiLMRun(tmp_path / "run"))


def test_does_not_go_on_with_other_texts(short, text, tmp_path):
    run = BiLMRun(shutil.copytree(short[0].directory, tmp_path / "run"))
    other = tmp_path / "other.txt"
    other.write_text(text.read_text() + "\n\none two three")
    before = {path: path.stat().st_mtime_ns for path in run.directory.rglob("*")}
    with pytest.raises(UserError, match="began with other training data"):
        pretrain_bilm(configured(other), run, resume=True)
    assert before == {p: p.stat().st_mtime_ns for p in run.directory.rglob("*")}


def test_a_mistake_leaves_nothing_behind(text, tmp_path, monkeypatch):
    def refuse(*arguments):
        raise UserError("too many replicas")

    monkeypatch.setattr(bilm_pretrainer.SentenceBatches, "plan", refuse)
    run = BiLMRun(tmp_path / "run")
    with pytest.raises(UserError, match="too many replicas"):
        pretrain_bilm(configured(text), run)
    # So the mended command can be given as it stands.
    assert not run.directory.exists()
