"""Tests of qanet.training.mlm_pretrainer, and of what they train."""

import csv
import json
import os
import random
import shutil
import sys

import keras
import numpy as np
import pytest
from tiny_runs import eagerly

from qanet.datasets.plans import NO_ITEM, PlannedBatch
from qanet.errors import UserError
from qanet.models.bert import BERTConfig, PieceSizes, build_bert, piece_sizes
from qanet.models.bert_weights import check_sizes, load_pretrained, read_tensors
from qanet.pretraining.config import MLMPretrainingConfig
from qanet.pretraining.mlm_batches import MaskedBatches
from qanet.pretraining.mlm_model import build_mlm_model
from qanet.pretraining.pairs import encode_documents
from qanet.pretraining.run import MLMRun
from qanet.pretraining.texts import read_documents, split_held_out
from qanet.settings import configure
from qanet.text.pieces import WordPieces
from qanet.training import mlm_pretrainer
from qanet.training.distribution import make_distribution
from qanet.training.mlm_pretrainer import HELD_OUT_SEED, pretrain_mlm
from qanet.weights import saved_variables

TOPICS = [[f"{letter}{i}" for i in range(3)] for letter in "abcdefgh"]
SETTINGS = """
    data.pieces=100 data.length=24 data.held_out=0.3
    model.width=32 model.blocks=1 model.heads=2 model.feed_forward=64 model.dropout=0
    model.attention_dropout=0 training.batch_size=16
""".split()
LEARNING = """
    training.steps=300 training.evaluate_every=150 training.warmup_steps=30
    training.learning_rate=0.01
""".split()
SHORT = """
    training.steps=4 training.evaluate_every=2 training.warmup_steps=1
    model.dropout=0.1 model.attention_dropout=0.1
""".split()


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Documents on a topic each, whose words no other topic has."""
    draw = random.Random(1)
    documents = [
        "".join(f"{' '.join(draw.choices(words, k=3))}.\n" for _ in range(12))
        for words in TOPICS * 12
    ]
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(documents))
    return path


def configured(text, *overrides):
    values = {"data": {"text": [str(text)]}}
    return configure(MLMPretrainingConfig, values, [*SETTINGS, *overrides], "test")


def history_of(run):
    return list(csv.DictReader(run.history_path.read_text().splitlines()))


@pytest.fixture(scope="module")
def short(text, tmp_path_factory):
    """A short training with all noise."""
    run = MLMRun(tmp_path_factory.mktemp("short") / "run")
    with eagerly():
        pretrain_mlm(configured(text, *SHORT), run)
    return run


def test_topics_are_learned(text, tmp_path):
    run = MLMRun(tmp_path / "run")
    metrics = pretrain_mlm(configured(text, *LEARNING), run)
    assert json.loads(run.metrics_path.read_text()) == metrics
    rows = history_of(run)
    assert [row["step"] for row in rows] == ["150", "300"]
    assert float(rows[1]["held_out_loss"]) < float(rows[0]["loss"])
    best = min(rows, key=lambda row: float(row["held_out_loss"]))
    for name, value in metrics.items():
        assert float(best[name]) == value
    # Who does not see the topic has 3/4 log 24 = 2.4, for the full stop is certain.
    assert metrics["masked_loss"] < 1.8
    # Now and then a random segment is of the same topic.
    assert metrics["next_sentence_accuracy"] > 0.7


def test_what_is_measured_is_what_is_held_out(short, text):
    config = configured(text, *SHORT)
    vocabulary = WordPieces.load(short.vocabulary_directory)
    documents = read_documents(config.data.text)
    _, held_out = split_held_out(documents, config.data.held_out, 2)
    batches = MaskedBatches(
        encode_documents(held_out, vocabulary), vocabulary, config, HELD_OUT_SEED
    )
    model = build_mlm_model(config.model, piece_sizes(vocabulary))
    short.load_weights(model)
    rightly, count = 0, 0
    for batch in batches.plan():
        labels = batches.targets(batch)["labels"][batch.items != NO_ITEM]
        logits = keras.ops.convert_to_numpy(
            model(batches.inputs(batch))["masked_logits"]
        )
        logits = logits[batch.items != NO_ITEM]
        rightly += (logits.argmax(-1) == labels)[labels != 0].sum()
        count += (labels != 0).sum()
    metrics = json.loads(short.metrics_path.read_text())
    assert metrics["masked_accuracy"] == pytest.approx(rightly / count)


def test_other_seeds_are_measured_on_the_same_pairs(text, tmp_path, monkeypatch):
    made = []

    class Batches(MaskedBatches):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(mlm_pretrainer, "MaskedBatches", Batches)
    monkeypatch.setattr(mlm_pretrainer, "Loop", None)
    for seed in (1, 2):
        config = configured(text, *SHORT, f"training.seed={seed}")
        with pytest.raises(TypeError):  # There is no loop.
            pretrain_mlm(config, MLMRun(tmp_path / "run"))
    train, held_out, other_train, other_held_out = made
    assert (train.pairs != other_train.pairs).any()
    (batch, *_) = held_out.plan()
    for name, array in (held_out.inputs(batch) | held_out.targets(batch)).items():
        found = other_held_out.inputs(batch) | other_held_out.targets(batch)
        np.testing.assert_array_equal(found[name], array)


def test_the_encoder_has_the_best_weights_not_the_last(
    text, tmp_path, monkeypatch, uncompiled
):
    losses = iter([2.0, 3.0])

    def measure():
        return dict.fromkeys(mlm_pretrainer.MEASURED, next(losses))

    monkeypatch.setattr(mlm_pretrainer, "_measurement", lambda *_: measure)
    run = MLMRun(tmp_path / "run")
    config = configured(text, *SHORT, "training.steps=2", "training.evaluate_every=1")
    assert pretrain_mlm(config, run)["step"] == 1
    sizes = piece_sizes(WordPieces.load(run.encoder_directory))
    stored = build_mlm_model(config.model, sizes)
    directory = str(run.encoder_directory)
    load_pretrained(stored, config.model.model_copy(update={"pretrained": directory}))
    with np.load(run.weights_path) as best:
        for name, variable in saved_variables(stored).items():
            np.testing.assert_array_equal(np.array(variable), best[name], name)


def test_a_training_that_was_stopped_goes_on_bit_for_bit(
    short, text, tmp_path, uncompiled, ctrl_c
):
    run = MLMRun(tmp_path / "run")
    with ctrl_c(3):
        pretrain_mlm(configured(text, *SHORT), run)
    assert not run.encoder_directory.exists()
    pretrain_mlm(run.load_config(), run, resume=True)
    with np.load(run.weights_path) as one, np.load(short.weights_path) as other:
        assert one.files == other.files
        for name in one.files:
            np.testing.assert_array_equal(one[name], other[name], name)
    for column in ("step", "loss", *mlm_pretrainer.MEASURED):
        rows = [[row[column] for row in history_of(r)] for r in (run, short)]
        assert rows[0] == rows[1]
    tensors = [read_tensors(r.encoder_directory)[1] for r in (run, short)]
    for name, tensor in tensors[0].items():
        np.testing.assert_array_equal(tensor, tensors[1][name], name)


def test_devices_train_like_one(short, text, tmp_path, uncompiled):
    """Two of them, whose shares have not quite as many masked pieces each."""
    run = MLMRun(tmp_path / "run")
    pretrain_mlm(configured(text, *SHORT, "distribution.strategy=mirrored"), run)
    for one, other in zip(history_of(run), history_of(short), strict=True):
        assert (one["step"], one["examples"]) == (other["step"], other["examples"])
        for column in ("loss", "held_out_loss", "masked_loss"):
            assert float(one[column]) == pytest.approx(float(other[column]), rel=0.02)


def states(model, inputs):
    """What the last block gives."""
    last = model.get_layer("block_0").output
    return np.asarray(keras.Model(model.input, last)(inputs))


def test_a_reader_begins_with_the_encoder(short):
    config = short.load_config()
    vocabulary = WordPieces.load(short.encoder_directory)
    sizes = piece_sizes(vocabulary)
    model = build_mlm_model(config.model, sizes)
    short.load_weights(model)
    wanted = config.model.model_dump() | {"pretrained": str(short.encoder_directory)}
    wanted = BERTConfig(**wanted)
    check_sizes(wanted)
    reader = build_bert(wanted, sizes)
    load_pretrained(reader, wanted)

    question, context = ([vocabulary.number_of[w] for w in t[:2]] for t in TOPICS[:2])
    pieces = [[sizes.cls, *question, sizes.sep, *context, sizes.sep]]
    inputs = {
        "pieces": np.array(pieces, "int32"),
        "segments": np.array([[0, 0, 0, 0, 1, 1, 1]], "int32"),
        "masked_positions": np.array([[1]], "int32"),
    }
    texts = {"question_pieces": np.array([question]), "context_pieces": [context]}
    texts = {name: np.array(array, "int32") for name, array in texts.items()}
    found = states(reader, texts)
    assert found.shape == (1, 7, 32)
    np.testing.assert_allclose(found, states(model, inputs), atol=1e-5)


def test_pretraining_goes_on_from_a_public_model(short, text, tmp_path):
    run = MLMRun(tmp_path / "run")
    begin = f"model.pretrained={short.encoder_directory}"
    config = configured(text, *SHORT, begin)
    distribution = make_distribution(config.distribution)

    def weights():
        loop, vocabulary = mlm_pretrainer._make_loop(config, run, False, distribution)
        model = loop.task.learner.model
        weights = {v.path: np.array(v) for v in model.trainable_weights}
        return weights, vocabulary

    found, vocabulary = weights()
    assert vocabulary.pieces == WordPieces.load(short.vocabulary_directory).pieces
    with np.load(short.weights_path) as expected:
        assert set(expected.files) == set(found)
        for name in expected.files:
            np.testing.assert_array_equal(found[name], expected[name], name)
    # A training that goes on needs them no more.
    run.checkpoint_directory.mkdir(parents=True)
    (run.checkpoint_directory / "step-000002.npz").touch()
    table = "embedding/piece"
    assert not np.array_equal(weights()[0][table], found[table])


def test_words_that_all_documents_have_are_pieces_of_the_encoder(short, text):
    vocabulary = WordPieces.load(short.vocabulary_directory)
    assert {word for words in TOPICS for word in words} <= set(vocabulary.pieces)
    assert len(vocabulary.pieces) <= 100
    files = sorted(path.name for path in short.encoder_directory.iterdir())
    assert files == ["config.json", "model.safetensors", "vocab.txt"]


def test_nothing_is_learned_from_what_is_held_out(tmp_path):
    # A word of a letter that no other document has.
    words = [3 * letter for letter in "абвгдежзиклм"]
    path = tmp_path / "text.txt"
    text = "\n\n".join(f"a0 a1 {word}. a1 {word} a0." for word in words)
    path.write_text(text, encoding="utf-8")
    config = configured(path, *SHORT)
    documents = read_documents(config.data.text)
    train, held_out = split_held_out(documents, config.data.held_out, 2)
    trained_on = {word for word in words if f" {word}." in str(train)}
    assert len(trained_on) == len(words) - len(held_out)
    distribution = make_distribution(config.distribution)
    loop, vocabulary = mlm_pretrainer._make_loop(
        config, MLMRun(tmp_path / "run"), False, distribution
    )
    assert trained_on == {*words} & {*vocabulary.pieces}
    # What the vocabulary does not have would be unknown there.
    read = {vocabulary.pieces[number] for number in loop.task.maker.pieces}
    assert read == {"a0", "a1", ".", *trained_on}


# What is measured and what is made small.


def cross_entropies(logits, right):
    logits = logits.astype("float64")
    shifted = logits - logits.max(axis=-1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return -np.take_along_axis(logs, right[..., None], axis=-1)[..., 0]


class TwoBatches:
    """Three pairs in batches of two, with one and two masked pieces."""

    def __init__(self, rng):
        self.labels = np.array([[5, 0], [6, 7], [4, 0], [0, 0]])
        self.is_random = np.array([0, 1, 1, 0])
        self.outputs = {
            "masked_logits": rng.normal(size=(4, 2, 9)).astype("float32"),
            "is_random": rng.normal(size=(4, 2)).astype("float32"),
        }
        # One of the pieces and two of the pairs are predicted rightly; what is said
        # of padding and of no pair does not count.
        self.outputs["masked_logits"][:, :, :] -= 9 * (np.arange(9) == 0)
        for row, place, piece in ((0, 0, 5), (1, 0, 3), (1, 1, 3), (2, 0, 3)):
            self.outputs["masked_logits"][row, place, piece] = 5
        self.outputs["masked_logits"][[0, 2, 3], 1, 0] = 9
        self.outputs["is_random"][:, 1] = [-3, 3, -3, -3]

    def plan(self):
        items = np.array([[0, 1], [2, NO_ITEM]])
        return [PlannedBatch(part, 8, 8) for part in items]

    def part(self, batch, arrays):
        rows = slice(0, 2) if batch.items[0] == 0 else slice(2, 4)
        return {name: array[rows] for name, array in arrays.items()}

    def inputs(self, batch):
        return self.part(batch, self.outputs)

    def targets(self, batch):
        arrays = {"labels": self.labels, "is_random": self.is_random}
        return {k: v.astype("int32") for k, v in self.part(batch, arrays).items()}


def test_measurements_are_means_over_all_batches(rng):
    batches = TwoBatches(rng)
    found = mlm_pretrainer._measurement(lambda inputs: inputs, batches)()
    losses = cross_entropies(batches.outputs["masked_logits"], batches.labels)
    masked = losses[batches.labels > 0].mean()
    pairs = cross_entropies(batches.outputs["is_random"], batches.is_random)[:3].mean()
    assert found == pytest.approx(
        {
            "held_out_loss": masked + pairs,
            "masked_loss": masked,
            "masked_accuracy": 1 / 4,
            "next_sentence_accuracy": 2 / 3,
        },
        rel=1e-5,
    )
    assert tuple(found) == mlm_pretrainer.MEASURED


def test_the_loss_is_that_of_pieces_and_that_of_pairs(rng, text):
    batches = TwoBatches(rng)
    config = configured(text)
    model = build_mlm_model(config.model, PieceSizes(9, 2, 3))
    loss = mlm_pretrainer.mlm_learner(model, config.training).loss
    targets = {
        "labels": batches.labels.astype("int32"),
        "is_random": batches.is_random.astype("int32"),
    }
    losses = cross_entropies(batches.outputs["masked_logits"], batches.labels)
    pairs = cross_entropies(batches.outputs["is_random"], batches.is_random)
    expected = losses[batches.labels > 0].mean() + pairs.mean()
    assert float(loss(targets, batches.outputs)) == pytest.approx(expected, rel=1e-5)
    # Where nothing is masked, the pairs alone are learned.
    targets["labels"] = 0 * targets["labels"]
    found = float(loss(targets, batches.outputs))
    assert found == pytest.approx(pairs.mean(), rel=1e-5)


# Mistakes.


@pytest.mark.skipif(os.name != "posix", reason="there are no such locks")
def test_nothing_is_read_where_another_training_is_at_work(text, tmp_path):
    run = MLMRun(tmp_path / "run")
    with run.held(), pytest.raises(UserError, match="another process"):
        pretrain_mlm(configured(text, *SHORT), run)


def test_what_is_wrong_is_told_before_anything_is_written(text, tmp_path, monkeypatch):
    run = MLMRun(tmp_path / "run")
    few = tmp_path / "few.txt"
    few.write_text("A. B.\n\nC. D.\n\nE. F.\n")
    for config, message in (
        (configured(few), "3 documents are too few"),
        (
            configured(text, "training.batch_size=7", "distribution.strategy=mirrored"),
            "training.batch_size=7: 2 replicas cannot share it",
        ),
    ):
        with pytest.raises(UserError, match=message):
            pretrain_mlm(config, run)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(UserError, match="pip install safetensors"):
        pretrain_mlm(configured(text), run)
    assert not run.directory.exists()


def test_does_not_go_on_with_other_texts(short, text, tmp_path):
    run = MLMRun(shutil.copytree(short.directory, tmp_path / "run"))
    other = tmp_path / "other.txt"
    other.write_text(text.read_text() + "\n\na0 a1 a2.")
    with pytest.raises(UserError, match="began with other training data"):
        pretrain_mlm(configured(other, *SHORT), run, resume=True)
