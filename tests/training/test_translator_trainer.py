"""Tests of qanet.training.translator_trainer, and of what they train."""

import csv
import json
import os
import random
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from made_training import small_model

from qanet.errors import UserError
from qanet.settings import configure
from qanet.training import translator_trainer
from qanet.training.distribution import make_distribution
from qanet.training.loss import smoothed_cross_entropy
from qanet.training.optimizer import LearningRate
from qanet.training.translator_trainer import train_translator
from qanet.translation import neural
from qanet.translation.config import TranslationConfig
from qanet.translation.neural import NeuralTranslator
from qanet.translation.parallel import PairBatches, read_pairs, split_held_out
from qanet.translation.run import TranslationRun, build_translation_model
from qanet.translation.subwords import END, UNKNOWN, train_subwords

WORDS = dict(
    zip(
        "one two three four five six seven red blue".split(),
        "un deux trois quatre cinq six sept rouge bleu".split(),
        strict=True,
    )
)
SETTINGS = """
    model.pieces=60 model.width=32 model.layers=1 model.heads=2 model.feed_forward=64
    model.dropout=0 training.steps=240 training.warmup_steps=30
    training.learning_rate=0.01 training.batch_tokens=512 training.buckets=[12]
    training.held_out=50 training.evaluate_every=120
""".split()


def translated(words):
    """The last word comes first, as adjectives do not in French."""
    return " ".join([WORDS[words[-1]], *(WORDS[word] for word in words[:-1])])


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    draw = random.Random(1)
    path = tmp_path_factory.mktemp("pairs") / "toy.tsv"
    drawn = [draw.choices(list(WORDS), k=draw.randint(2, 4)) for _ in range(1500)]
    lines = {f"{' '.join(words)}\t{translated(words)}\ttoy\n" for words in drawn}
    path.write_text("".join(sorted(lines)))
    return path


def configured(pairs, *overrides, **values):
    return configure(
        TranslationConfig,
        {"data": [str(pairs)], **values},
        [*SETTINGS, *overrides],
        "test",
    )


@pytest.fixture(scope="module")
def learned(pairs, tmp_path_factory):
    """A model that was trained to the end, and its scores."""
    run = TranslationRun(tmp_path_factory.mktemp("learned") / "run")
    return run, train_translator(configured(pairs), run)


def history_of(run):
    return list(csv.DictReader(run.history_path.read_text().splitlines()))


def test_a_toy_language_is_learned(learned):
    run, metrics = learned
    assert metrics["pairs"] == 50
    assert metrics["bleu_greedy"] > 90
    assert metrics["bleu_beam_5"] > 90
    assert json.loads(run.metrics_path.read_text()) == metrics
    rows = history_of(run)
    assert [row["step"] for row in rows] == ["120", "240"]
    assert float(rows[1]["held_out_loss"]) < float(rows[0]["loss"])


def test_what_is_measured_is_what_is_held_out(pairs, learned):
    run, _ = learned
    config = configured(pairs)
    model, subwords = run.load_model()
    _, held_out = split_held_out(read_pairs(config.data, False), 50)
    encoded = map(subwords.encode, zip(*held_out, strict=True))
    total, count = 0.0, 0.0
    batches = PairBatches(*encoded, config.training)
    for batch in batches.reading():
        logits = model(batches.inputs(batch))
        sums = smoothed_cross_entropy(batches.targets(batch)["next"], logits, 0.1)
        total, count = total + float(sums[0]), count + float(sums[1])
    # The lowest, whose weights are stored.
    rows = [float(row["held_out_loss"]) for row in history_of(run)]
    assert total / count == pytest.approx(min(rows), rel=1e-4)


def test_nothing_is_learned_from_what_is_held_out(tmp_path):
    # Letters that no other pair has, on either side.
    letters = [chr(number) for number in range(0x4E00, 0x4E28)]
    both = list(zip(letters[::2], letters[1::2], strict=True))
    path = tmp_path / "pairs.tsv"
    lines = [f"a {one} {one}\tb {other}\n" for one, other in both]
    path.write_text("".join(lines), encoding="utf-8")
    config = configured(path, "training.held_out=5", "training.steps=4")
    distribution = make_distribution(config.distribution)
    loop, held_out, subwords = translator_trainer._make_loop(
        config, TranslationRun(tmp_path / "run"), False, distribution
    )
    assert len(held_out) == 5
    unknown = {letter for letter in letters if UNKNOWN in subwords.encode([letter])[0]}
    assert unknown == {letter for letter in letters if letter in str(held_out)}
    for batch in loop.task.plan:
        for arrays in (loop.task.maker.inputs(batch), loop.task.maker.targets(batch)):
            assert all(UNKNOWN not in array for array in arrays.values())


def test_a_translator_learns_from_smoothed_targets(rng):
    config = TranslationConfig(data=("x",)).training
    config = config.model_copy(update={"label_smoothing": 0.3})
    targets = {"next": rng.integers(0, 5, (2, 3)).astype("int32")}
    logits = rng.normal(size=(2, 3, 5)).astype("float32")
    loss = translator_trainer.translation_learner(small_model(), config).loss(
        targets, logits
    )
    total, count = smoothed_cross_entropy(targets["next"], logits, 0.3)
    assert float(loss) == pytest.approx(float(total) / float(count))
    sharp, _ = smoothed_cross_entropy(targets["next"], logits, 0.0)
    assert float(sharp) != pytest.approx(float(total))


def test_many_sentences_of_all_lengths_are_translated(pairs, learned, monkeypatch):
    """As each alone, whatever batches they are read in."""
    run, _ = learned
    monkeypatch.setattr(neural, "BATCH_TOKENS", 24)
    translator = NeuralTranslator(run.directory)
    buckets = {"buckets": (6, 12)}
    training = translator.config.training.model_copy(update=buckets)
    translator.config = translator.config.model_copy(update={"training": training})
    sentences = [" ".join(list(WORDS)[i : i + n]) for n in (2, 3, 4) for i in range(5)]
    sentences += [" ".join(["one"] * n) for n in range(1, 14)]
    lengths = [len(pieces) for pieces in translator.subwords.encode(sentences)]
    # Just those that a bucket holds with the mark of the end, and one that none does.
    assert {5, 6, 11, 12} <= set(lengths)
    found = translator.translate(sentences, 1)
    for sentence, row, length in zip(sentences, found, lengths, strict=True):
        assert row == translator.translate([sentence], 1)[0]
        if length > 11:
            assert row == []
    assert all(found[:15])


def test_the_baseline_learns_it_too_and_backwards(pairs, tmp_path, monkeypatch):
    run = TranslationRun(tmp_path / "run")
    config = configured(pairs, "model.name=recurrent", reverse=True)
    # Measuring BLEU takes as long as the training.
    monkeypatch.setattr(translator_trainer, "bleu", lambda *_: 0.0)
    train_translator(config, run)
    translator = NeuralTranslator(run.directory, beams=1)
    assert translator.translate(["rouge un deux", "quatre bleu six cinq"], 1) == [
        ["one two red"],
        ["blue six five four"],
    ]


@pytest.mark.skipif(os.name != "posix", reason="there are no such locks")
def test_nothing_is_read_where_another_training_is_at_work(pairs, tmp_path):
    run = TranslationRun(tmp_path / "run")
    with run.held(), pytest.raises(UserError, match="another process"):
        train_translator(configured(pairs), run)


def test_a_mistake_leaves_nothing_behind(pairs, tmp_path):
    run = TranslationRun(tmp_path / "run")
    config = configured(pairs, "training.buckets=[1]")
    with pytest.raises(UserError):
        train_translator(config, run)
    # So the mended command can be given as it stands.
    assert not run.config_path.exists()


# The translator.


def test_translations_are_different_and_the_best_first(learned):
    translator = NeuralTranslator(learned[0].directory)
    sentences = ["one two red", "", "blue six five four", "  "]
    found = translator.translate(sentences, 3)
    assert [row[:1] for row in found] == [
        ["rouge un deux"],
        [],
        ["quatre bleu six cinq"],
        [],
    ]
    for row in found:
        assert len(set(row)) == len(row) <= 3
        assert all(row)
    assert translator.translate(sentences, 1) == [row[:1] for row in found]


def test_a_sentence_that_is_too_long_has_no_translation(learned):
    translator = NeuralTranslator(learned[0].directory)
    assert translator.translate(["one " * 50, "one two"], 1) == [[], ["deux un"]]


def test_a_translation_that_does_not_end_is_none(learned, monkeypatch):
    translator = NeuralTranslator(learned[0].directory)
    cut, whole = translator.subwords.encode(["rouge un", "deux"])
    found = np.zeros((1, 2, 40), np.int32)
    found[0, 0, : len(cut)] = cut
    found[0, 1, : len(whole) + 1] = [*whole, END]
    search = SimpleNamespace(predict_on_batch=lambda inputs: (found, None))
    monkeypatch.setattr(translator, "_search", lambda length, count: search)
    assert translator.translate(["two"], 2) == [["deux"]]
    found[0, 1, len(whole)] = 0
    assert translator.translate(["two"], 2) == [[]]


def test_a_translation_may_be_one_and_a_half_times_as_long(pairs, tmp_path, uncompiled):
    run, config = TranslationRun(tmp_path / "run"), configured(pairs)
    subwords = train_subwords([*WORDS, *WORDS.values()], config.model.pieces, seed=1)
    subwords.save(run.subwords_path)
    run.save_config(config)
    run.save_weights(build_translation_model(config.model, len(subwords)))
    inputs = {
        "source": np.full((1, 12), END + 1, dtype="int32"),
        "seed": np.zeros(1, dtype="uint32"),
    }
    # Likeliest ones and drawn ones.
    for temperature in (None, 1.0):
        translator = NeuralTranslator(run.directory, temperature, beams=1)
        tokens, _ = translator._search(12, 1).predict_on_batch(inputs)
        assert tokens.shape == (1, 1, 18)


def test_samples_follow_from_the_sentence(learned):
    translator = NeuralTranslator(learned[0].directory, temperature=2.0)
    sentences = ["one two red", "blue six five four"]
    found = translator.translate(sentences, 4)
    assert len({text for row in found for text in row}) > 2
    assert translator.translate(sentences[::-1], 4) == found[::-1]
    cold = NeuralTranslator(learned[0].directory, temperature=0.01)
    assert cold.translate(sentences, 1) == [["rouge un deux"], ["quatre bleu six cinq"]]


def test_the_name_tells_models_and_ways_apart(learned, tmp_path):
    directory = learned[0].directory
    names = {
        NeuralTranslator(directory).name,
        NeuralTranslator(directory, beams=1).name,
        NeuralTranslator(directory, temperature=1.0).name,
    }
    copy = tmp_path / directory.name
    shutil.copytree(directory, copy)
    assert NeuralTranslator(copy).name in names
    with np.load(copy / "weights.npz") as file:
        arrays = {name: array * 0.5 for name, array in file.items()}
    np.savez(copy / "weights.npz", **arrays)
    names.add(NeuralTranslator(copy).name)
    assert len(names) == 4


@pytest.mark.parametrize("name", ["config.json", "subwords.model", "weights.npz"])
def test_damaged_and_missing_files_are_named(learned, tmp_path, name):
    copy = tmp_path / "run"
    shutil.copytree(learned[0].directory, copy)
    path = copy / name
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(UserError, match=name):
        NeuralTranslator(copy)
    path.unlink()
    with pytest.raises(UserError, match=name):
        NeuralTranslator(copy)


# The training.


@pytest.mark.parametrize("strategy", ["none", "mirrored"])
def test_a_training_that_was_stopped_goes_on_bit_for_bit(
    pairs, tmp_path, monkeypatch, uncompiled, ctrl_c, strategy
):
    run = TranslationRun(tmp_path / "run")
    steps = ("training.steps=4", "training.evaluate_every=2")
    devices = f"distribution.strategy={strategy}"
    config = configured(pairs, *steps, "model.dropout=0.1", devices)
    # Measuring BLEU would take longer than the training.
    monkeypatch.setattr(translator_trainer, "bleu", lambda *_: 0.0)
    with ctrl_c(3):
        train_translator(config, run)
    train_translator(run.load_config(), run, resume=True)
    whole = TranslationRun(tmp_path / "whole")
    train_translator(config, whole)
    with np.load(run.weights_path) as one, np.load(whole.weights_path) as other:
        assert one.files == other.files
        for name in one.files:
            np.testing.assert_array_equal(one[name], other[name], name)
    for column in ("step", "loss", "held_out_loss"):
        rows = [[row[column] for row in history_of(r)] for r in (run, whole)]
        assert rows[0] == rows[1]


def test_devices_train_like_one(pairs, tmp_path, monkeypatch, uncompiled):
    """Two of them, whose batches are those of one that holds as many pairs."""
    monkeypatch.setattr(translator_trainer, "bleu", lambda *_: 0.0)
    steps = ("training.steps=4", "training.evaluate_every=2")
    rows = []
    # 40 pairs of 12 sub-words, which two devices share.
    for strategy in ("none", "mirrored"):
        run = TranslationRun(tmp_path / strategy)
        devices = f"distribution.strategy={strategy}"
        train_translator(
            configured(pairs, *steps, "training.batch_tokens=480", devices), run
        )
        rows.append(history_of(run))
    for one, other in zip(*rows, strict=True):
        assert (one["step"], one["examples"]) == (other["step"], other["examples"])
        for column in ("loss", "held_out_loss"):
            assert float(one[column]) == pytest.approx(float(other[column]), rel=0.02)
    # Two devices had other batches.
    with pytest.raises(UserError, match="another number of devices"):
        train_translator(configured(pairs, *steps), run, resume=True)


@pytest.mark.parametrize(("strategy", "rows"), [("none", 5), ("mirrored", 4)])
def test_devices_have_equal_shares_of_a_batch(pairs, tmp_path, strategy, rows):
    strategy = f"distribution.strategy={strategy}"
    config = configured(pairs, "training.batch_tokens=60", strategy)
    distribution = make_distribution(config.distribution)
    with distribution.scope():
        run = TranslationRun(tmp_path / "run")
        loop, *_ = translator_trainer._make_loop(config, run, False, distribution)
    assert {len(batch.items) for batch in loop.task.plan} == {rows}


def test_does_not_go_on_with_other_pairs(learned, pairs, tmp_path):
    run = TranslationRun(shutil.copytree(learned[0].directory, tmp_path / "run"))
    other = tmp_path / "other.tsv"
    other.write_text(pairs.read_text() + "eight\thuit\n")
    with pytest.raises(UserError, match="began with other training data"):
        train_translator(configured(other), run, resume=True)


def test_a_damaged_checkpoint_is_named(learned, pairs, tmp_path):
    copy = TranslationRun(tmp_path / "run")
    shutil.copytree(learned[0].directory, copy.directory)
    for path in copy.checkpoint_directory.iterdir():
        path.write_bytes(b"no archive")
    with pytest.raises(UserError, match=r"step-00000240\.npz.*remove"):
        train_translator(copy.load_config(), copy, resume=True)


def test_a_loss_that_is_no_number_stops_the_training(pairs, tmp_path, uncompiled):
    run = TranslationRun(tmp_path / "run")
    config = configured(pairs, "training.learning_rate=1e30", "training.steps=5")
    with pytest.raises(UserError, match=r"lower training\.learning_rate"):
        train_translator(config, run)
    assert not run.weights_path.exists()


def test_without_the_library_for_bleu_nothing_is_trained(pairs, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    run = TranslationRun(tmp_path / "run")
    with pytest.raises(UserError, match=r"pip install 'qanet\[translate\]'"):
        train_translator(configured(pairs), run)
    assert not run.directory.exists()


def test_the_rate_rises_and_falls(pairs):
    schedule = LearningRate(configured(pairs).training)
    rates = [float(schedule(step)) for step in range(0, 241, 10)]
    assert 0 < rates[0] < 0.001
    assert max(rates) == rates[3] == pytest.approx(0.01, rel=1e-3)
    assert rates[3:] == sorted(rates[3:], reverse=True)
    assert rates[-1] == pytest.approx(0.0, abs=1e-6)
