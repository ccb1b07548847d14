"""Tests of qanet.training.trainer: tiny runs of a few steps."""

import csv
import os
import signal
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from keras import ops
from made_training import small_model

import qanet.training.trainer as trainer_module
from qanet.config import Config, TrainingConfig
from qanet.datasets.features import build_features, join_features
from qanet.datasets.plans import PlannedBatch
from qanet.datasets.squad import Example, Span
from qanet.datasets.training_data import TrainingData
from qanet.datasets.windows import Windows
from qanet.errors import UserError
from qanet.evaluation.evaluator import Evaluation
from qanet.models.registry import forward_flops
from qanet.reader import NotFinite
from qanet.run import Run
from qanet.training import loop
from qanet.training.checkpoint import Progress, checkpoints
from qanet.training.curves import Curves
from qanet.training.loss import distillation_loss
from qanet.training.trainer import Trainer, left_out_of, reading_learner

# The clock stands in these columns.
TIMES = ("seconds", "steps_per_second", "examples_per_second", "model_gflops")


def weights_of(model):
    return {v.path: ops.convert_to_numpy(v).copy() for v in model.trainable_variables}


def averages_of(trainer):
    with trainer.loop.task.learner.averaged_weights():
        return weights_of(trainer.model)


def stored_weights(run):
    with np.load(run.weights_path, allow_pickle=False) as file:
        return dict(file)


def history_of(run):
    """The rows of `history.csv` without the columns that tell the time."""
    with run.history_path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [{k: v for k, v in row.items() if k not in TIMES} for row in rows]


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def same(one, other):
    return all(np.array_equal(one[name], other[name]) for name in one)


def configure(trainer, **settings):
    training = trainer.config.training.model_copy(update=settings)
    trainer.config = trainer.config.model_copy(update={"training": training})
    trainer.loop.config = training


@pytest.fixture
def scores(monkeypatch, compiled_trainer):
    """Evaluations give these F1, one after the other, and keep what they saw."""
    seen = SimpleNamespace(f1=[], weights=[], questions=[], options=[])

    model = compiled_trainer.trainer.model

    def evaluate(reader, examples, features, questions=0, **options):
        seen.weights.append(weights_of(model))
        seen.questions.append((len(examples), questions))
        seen.options.append(options)
        f1 = seen.f1[len(seen.weights) - 1]
        if isinstance(f1, BaseException):
            raise f1
        # F1 alone decides, so exact match says the opposite.
        metrics = {"exact_match": 100.0 - f1, "f1": f1, "total": len(examples)}
        return Evaluation(metrics, {})

    monkeypatch.setattr(trainer_module, "evaluate", evaluate)
    return seen


def test_history_has_a_row_for_each_evaluation(trainer):
    trainer.loop.fit()
    with trainer.loop.run.history_path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["2", "4", "6"]
    assert [row["examples"] for row in rows] == ["8", "16", "24"]
    for row in rows:
        assert np.isfinite(float(row["loss"]))
        assert 0 <= float(row["exact_match"]) <= float(row["f1"]) <= 100
        steps = float(row["steps_per_second"])
        assert steps > 0
        # Four examples a step; figures are rounded to 0.1.
        assert float(row["examples_per_second"]) == pytest.approx(4 * steps, abs=0.06)
    seconds = [float(row["seconds"]) for row in rows]
    assert seconds == sorted(seconds)
    rates = [float(row["learning_rate"]) for row in rows]
    assert rates[-1] == pytest.approx(0)
    assert trainer.loop.progress.step == 6


def test_curves_are_written_for_tensorboard(trainer):
    trainer.loop.fit()
    (events,) = trainer.loop.run.tensorboard_directory.iterdir()
    content = events.read_bytes()
    for name in (b"loss", b"f1", b"exact_match", b"learning_rate", b"gradient_norm"):
        assert content.count(name) == 3


def test_resumption_hides_the_curves_of_later_steps_alone(trainer, scores, monkeypatch):
    hidden_from = []

    def curves(directory, first_step):
        hidden_from.append(first_step)
        return Curves(directory / str(first_step), first_step)

    monkeypatch.setattr(loop, "Curves", curves)
    scores.f1 = [1.0, KeyboardInterrupt(), 2.0, 3.0]
    with pytest.raises(KeyboardInterrupt):
        trainer.loop.fit()
    trainer.loop.resume()
    trainer.loop.fit()
    # The evaluation at step 2 is in the checkpoint, and its curves stay.
    assert hidden_from == [1, 3]


def test_averages_are_what_is_evaluated(trainer, scores):
    scores.f1 = [10.0, 20.0, 30.0]
    trainer.loop.fit()
    raw, average = weights_of(trainer.model), averages_of(trainer)
    assert_same(scores.weights[-1], average)
    assert not same(scores.weights[-1], raw)
    assert not same(scores.weights[0], scores.weights[1])


def test_saved_weights_are_the_averages_of_the_best_evaluation(trainer, scores):
    scores.f1 = [10.0, 30.0, 20.0]
    trainer.loop.fit()
    assert_same(stored_weights(trainer.loop.run), scores.weights[1])
    assert not same(scores.weights[1], scores.weights[2])
    assert trainer.loop.progress.best_score == 30.0
    assert trainer.loop.progress.evaluations_since_best == 1


def test_the_first_of_equal_scores_is_kept(trainer, scores):
    scores.f1 = [0.0, 0.0, 0.0]
    trainer.loop.fit()
    assert_same(stored_weights(trainer.loop.run), scores.weights[0])


def test_evaluating_does_not_change_the_training(trainer, rewind):
    """Nor does the number of rounds: raw weights are trained, never the averages."""
    trainer.loop.fit()
    often = weights_of(trainer.model)
    rewind()
    trainer.loop.run = Run(trainer.loop.run.directory.with_name("seldom"))
    configure(trainer, evaluate_every=6)
    trainer.loop.fit()
    assert_same(weights_of(trainer.model), often)


def test_stops_when_patience_is_exhausted(trainer, scores):
    configure(trainer, evaluate_every=1, patience=2)
    scores.f1 = [10.0, 20.0, 15.0, 20.0, 99.0, 99.0]
    trainer.loop.fit()
    assert [row["step"] for row in history_of(trainer.loop.run)] == ["1", "2", "3", "4"]
    assert_same(stored_weights(trainer.loop.run), scores.weights[1])


def test_without_patience_trains_to_the_end(trainer, scores):
    configure(trainer, evaluate_every=1, patience=0)
    scores.f1 = [10.0, 9.0, 8.0, 7.0, 6.0, 5.0]
    trainer.loop.fit()
    assert trainer.loop.progress.step == 6


def test_the_last_round_is_shorter_where_the_steps_do_not_divide(trainer, scores):
    configure(trainer, evaluate_every=4)
    scores.f1 = [1.0, 2.0]
    trainer.loop.fit()
    assert [row["step"] for row in history_of(trainer.loop.run)] == ["4", "6"]


def test_evaluations_read_as_many_questions_as_configured(trainer, scores):
    configure(trainer, evaluation_questions=3)
    scores.f1 = [1.0, 2.0, 3.0]
    trainer.loop.fit()
    assert scores.questions == [(10, 3)] * 3
    # Or readers that know "no answer" would be compared at an untaught threshold.
    assert all(options["choose_threshold"] for options in scores.options)


def test_finished_run_is_left_as_it_is(trainer, scores):
    scores.f1 = [1.0, 2.0, 3.0]
    trainer.loop.fit()
    before = weights_of(trainer.model)
    trainer.loop.fit()
    assert len(scores.weights) == 3
    assert_same(weights_of(trainer.model), before)


def test_nan_loss_stops_the_training_and_names_the_step(trainer, scores, ctrl_c):
    scores.f1 = [1.0]
    with ctrl_c(3):
        trainer.loop.fit()
    trainer.loop.resume()
    stored = stored_weights(trainer.loop.run)
    weight = trainer.model.trainable_variables[-1]
    weight.assign(ops.full(weight.shape, np.nan))
    with pytest.raises(UserError, match=r"nan at step 4\b.*learning_rate"):
        trainer.loop.fit()
    # Neither the weights nor the checkpoint have learned of it.
    assert_same(stored_weights(trainer.loop.run), stored)
    trainer.loop.resume()
    assert trainer.loop.progress.step == 3
    assert all(np.isfinite(w).all() for w in weights_of(trainer.model).values())


def test_weights_without_a_finite_gradient_are_in_no_checkpoint(trainer, monkeypatch):
    """The loss of the last step before a checkpoint may be finite."""

    def train(maker, plan):
        yield from [(1.0, np.inf)] * len(plan)

    monkeypatch.setattr(trainer.loop, "train", train)
    with pytest.raises(UserError, match=r"gradient's norm is inf at step 2\b"):
        trainer.loop.fit()
    assert not checkpoints(trainer.loop.run.checkpoint_directory)


def test_answers_that_are_no_numbers_stop_it_too(trainer, scores):
    # The last update before an evaluation shows in no loss.
    scores.f1 = [NotFinite("damaged")]
    with pytest.raises(UserError, match=r"dev .*lower training\.learning_rate"):
        trainer.loop.fit()


def test_same_seed_same_result(trainer, rewind):
    trainer.loop.fit()
    first = weights_of(trainer.model), history_of(trainer.loop.run)
    rewind()
    trainer.loop.run = Run(trainer.loop.run.directory.with_name("again"))
    trainer.loop.fit()
    assert_same(weights_of(trainer.model), first[0])
    assert history_of(trainer.loop.run) == first[1]


def test_seed_decides_on_first_weights_and_order(trainer, compiled_trainer, tmp_path):
    def made(seed):
        configure(trainer, seed=seed)
        other = Trainer(
            trainer.config,
            compiled_trainer.data,
            Run(tmp_path),
            compiled_trainer.distribution,
        )
        seeds = [
            ops.convert_to_numpy(v)
            for v in other.model.non_trainable_variables
            if "seed" in v.path
        ]
        order = np.concatenate([batch.items for batch in other.loop.task.plan])
        return weights_of(other.model), dict(enumerate(seeds)), order

    first, again, other = made(42), made(42), made(43)
    assert first[1]
    assert_same(first[0], again[0])
    assert_same(first[1], again[1])
    np.testing.assert_array_equal(first[2], again[2])
    for name, value in first[0].items():
        # An initializer made on import would have drawn its seed before ours is set.
        if np.ptp(value):
            assert not np.array_equal(value, other[0][name]), name
    assert not same(first[1], other[1])
    assert not np.array_equal(first[2], other[2])


def test_a_step_has_three_times_the_products_of_reading_its_batch(compiled_trainer):
    trainer = compiled_trainer.trainer
    model, sizes = trainer.config.model, trainer.sizes
    planned = PlannedBatch(np.arange(4), 32, 8)
    assert trainer._flops(planned) == 3 * 4 * forward_flops(model, sizes, 32, 8)


def test_a_taught_reader_learns_start_and_end_from_their_own_targets(rng):
    names = ("start_logits", "end_logits")
    outputs = {name: rng.normal(size=(3, 5)).astype("float32") for name in names}
    one_hot = np.eye(5, dtype="float32")
    targets = {name: one_hot[rng.integers(5, size=3)] for name in names}
    for name in names:
        soft = rng.normal(size=(3, 5)).astype("float32")
        targets[f"teacher_{name}"] = ops.convert_to_numpy(ops.log_softmax(soft))
    training = TrainingConfig(teacher_share=0.3, temperature=3.0)
    learner = reading_learner(small_model(), Config(training=training), taught=True)
    expected = sum(
        ops.mean(
            distillation_loss(
                targets[name], targets[f"teacher_{name}"], outputs[name], 0.3, 3.0
            )
        )
        for name in names
    )
    assert float(learner.loss(targets, outputs)) == pytest.approx(float(expected))


def test_what_is_left_out_is_counted_for_each_set():
    windows = Windows(np.array([0, 2, 3, 5]), np.zeros(4, int), np.ones(4, int))
    sources = {"original": 3, "fr": 4}
    assert left_out_of(sources, windows) == {"original": 1, "fr": 2}


def test_the_mix_reaches_the_plan(compiled_trainer, tiny_config, tmp_path):
    data = compiled_trainer.data
    count = len(data.train)
    mixed = replace(
        data,
        train=join_features([data.train, data.train]),
        sources={"original": count, "fr": count},
    )
    mix = {"augmented": {"fr": "fr.json"}, "mix": {"original": 2, "fr": 1}}
    config = tiny_config.model_copy(
        update={"data": tiny_config.data.model_copy(update=mix)}
    )
    trainer = Trainer(config, mixed, Run(tmp_path), compiled_trainer.distribution)
    items = np.concatenate([batch.items for batch in trainer.loop.task.plan])
    # 24 items: less than one epoch of 24 originals and 12 others.
    from_fr = int((trainer.loop.task.maker.windows.examples[items] >= count).sum())
    assert 0 < from_fr <= 12
    assert len(set(items.tolist())) == 24


def test_no_example_to_train_on_is_a_users_mistake(compiled_trainer, tiny_config):
    examples = [Example("1", "Who?", "word " * 9, (Span("word " * 9, 0),))]
    features = build_features(examples)
    vocabulary = compiled_trainer.data.vocabulary
    data = TrainingData(features, {"original": 1}, examples, features, vocabulary, {})
    with pytest.raises(UserError, match=r"train.json.*answer_limit=4"):
        Trainer(tiny_config, data, Run("unused"), compiled_trainer.distribution)


@pytest.mark.parametrize(
    ("step", "times", "checkpoint_every", "stored"),
    [
        (3, 1, 1000, 3),
        # Before the measurement of step 4.
        (4, 1, 1000, 4),
        # In its last step.
        (6, 1, 1000, 6),
        # A second Ctrl-C does not wait for the end of the step.
        (4, 2, 1000, 2),
        (4, 2, 1, 3),
        (5, 2, 3, 4),
    ],
)
def test_interrupted_run_resumes_bit_for_bit(
    trainer, rewind, monkeypatch, ctrl_c, step, times, checkpoint_every, stored
):
    trainer.loop.fit()
    expected = weights_of(trainer.model), averages_of(trainer)
    uninterrupted = trainer.loop.run

    rewind()
    trainer.loop.run = Run(uninterrupted.directory.with_name("interrupted"))
    shorter = {"checkpoint_every": checkpoint_every}
    config = trainer.loop.config.model_copy(update=shorter)
    monkeypatch.setattr(trainer.loop, "config", config)
    with ctrl_c(step, times):
        trainer.loop.fit()
    rewind()
    trainer.loop.resume()
    assert trainer.loop.progress.step == stored
    trainer.loop.fit()
    assert_same(weights_of(trainer.model), expected[0])
    assert_same(averages_of(trainer), expected[1])
    assert_same(stored_weights(trainer.loop.run), stored_weights(uninterrupted))
    assert history_of(trainer.loop.run) == history_of(uninterrupted)


def test_one_that_was_stopped_in_a_measurement_has_that_alone_left(
    trainer, scores, monkeypatch
):
    scores.f1 = [1.0, KeyboardInterrupt(), 2.0, 3.0]
    with pytest.raises(KeyboardInterrupt):
        trainer.loop.fit()
    trainer.loop.resume()
    planned = []
    train = trainer.loop.train

    def noted(maker, plan):
        planned.append(len(plan))
        return train(maker, plan)

    monkeypatch.setattr(trainer.loop, "train", noted)
    trainer.loop.fit()
    assert planned == [2]
    assert [row["f1"] for row in history_of(trainer.loop.run)] == ["1.0", "2.0", "3.0"]


def test_what_a_killed_training_left_is_removed(trainer):
    run = trainer.loop.run
    parts = [
        path.with_name(f".{path.name}.0123abcd.tmp")
        for path in (run.weights_path, run.checkpoint_directory / "step-00000002.npz")
    ]
    for part in parts:
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(b"half")
    trainer.loop.fit()
    assert not [path for path in run.directory.rglob("*.tmp")]


def test_resume_without_a_checkpoint_starts_at_the_first_step(trainer):
    trainer.loop.resume()
    assert trainer.loop.progress == Progress()


def test_time_goes_on_after_a_resumption(trainer, scores):
    scores.f1 = [1.0, KeyboardInterrupt(), 2.0, 3.0]
    with pytest.raises(KeyboardInterrupt):
        trainer.loop.fit()
    trainer.loop.resume()
    trainer.loop.progress.seconds = 1000.0
    trainer.loop.fit()
    seconds = [row["seconds"] for row in trainer.loop.progress.history]
    assert seconds[0] < 1000 <= seconds[1]
    assert all(one <= other for one, other in pairwise(seconds))


@pytest.mark.skipif(os.name != "posix", reason="kill -9 needs POSIX signals")
def test_run_killed_with_signal_9_resumes_bit_for_bit(
    door, trained, tiny_arguments, killed_at_step_3, tmp_path
):
    directory = tmp_path / "killed"
    killed = door("-c", killed_at_step_3, *tiny_arguments, "--output", directory)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert [path.name for path in (directory / "checkpoints").iterdir()] == [
        "step-00000002.npz"
    ]
    resumed = door("train.py", "--resume", "--output", directory)
    assert resumed.returncode == 0, resumed.stderr
    assert "resumed at step 2" in resumed.stderr

    expected, actual = Run(trained.directory), Run(directory)
    assert_same(stored_weights(actual), stored_weights(expected))
    assert history_of(actual) == history_of(expected)
    assert actual.metrics_path.read_text() == expected.metrics_path.read_text()
    last = "checkpoints/step-00000006.npz"
    with (
        np.load(directory / last) as one,
        np.load(trained.directory / last) as other,
    ):
        # The progress holds times.
        assert_same(
            {name: one[name] for name in one.files if name != "progress"},
            {name: other[name] for name in other.files if name != "progress"},
        )
