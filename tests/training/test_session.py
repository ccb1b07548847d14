"""Tests of qanet.training.session: what a finished run holds."""

import itertools
import json
import os
import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from qanet.config import Config
from qanet.datasets.features import build_features
from qanet.datasets.squad import Example, Span, read_squad, write_squad
from qanet.decoding import Answer
from qanet.errors import UserError
from qanet.evaluation.evaluator import evaluate
from qanet.reader import Reader
from qanet.run import Run
from qanet.training import trainer
from qanet.training.session import TrainingReport, _epochs, train_run


@pytest.mark.parametrize(
    ("count", "expected"), [(3, ["0", "3", "6"]), (10, list("0123456789")), (99, None)]
)
def test_samples_are_spread_evenly_over_dev(count, expected):
    examples = [Example(str(i), "q", "c", ()) for i in range(10)]
    answers = [Answer(str(i), 0, 1, 1.0) for i in range(10)]
    samples = TrainingReport({}, examples, answers).samples(count)
    assert [example.id for example, _ in samples] == (expected or list("0123456789"))
    assert all(example.id == answer.text for example, answer in samples)


def test_run_holds_everything_and_no_temporary_file(trained):
    names = {path.name for path in trained.directory.iterdir()}
    assert names == {
        "checkpoints",
        "config.json",
        "data.json",
        "history.csv",
        "metrics.json",
        "tensorboard",
        "vocabulary",
        "weights.npz",
    }
    everything = [path.name for path in trained.directory.parent.rglob("*")]
    assert not [name for name in everything if name.endswith(".tmp")]
    checkpoints = (trained.directory / "checkpoints").iterdir()
    assert sorted(path.name for path in checkpoints) == [
        "step-00000004.npz",
        "step-00000006.npz",
    ]


def test_configuration_is_stored_whole(trained, tiny_config):
    run = Run(trained.directory)
    assert run.load_config() == tiny_config
    stored = json.loads(run.config_path.read_text(encoding="utf-8"))
    assert stored == json.loads(tiny_config.model_dump_json())


def test_nothing_is_dropped_silently(trained, tiny_files):
    counts = json.loads((trained.directory / "data.json").read_text(encoding="utf-8"))
    assert counts["train"]["questions"] == 25
    assert counts["dev"]["questions"] == 10
    # The one question whose answer is a whole sentence.
    assert counts["train"]["left_out"] == 1
    assert counts["train"] == read_squad(tiny_files.train).counts | {
        "answers_snapped": 0,
        "left_out": 1,
    }
    assert "train: 25 questions" in trained.errors
    assert "dev: 10 questions" in trained.errors
    assert "left out of training: 1 question" in trained.errors
    # 6 of 4, of the 24 that are left.
    assert "steps: 6 of 4 questions, 1.0 epochs" in trained.errors


def test_metrics_are_those_of_the_best_averaged_weights_on_all_of_dev(
    trained, trained_reader, tiny_files
):
    examples = read_squad(tiny_files.dev).examples
    metrics = evaluate(trained_reader, examples, build_features(examples)).metrics
    assert metrics["total"] == 10
    stored = json.loads((trained.directory / "metrics.json").read_text())
    assert stored == metrics
    history = (trained.directory / "history.csv").read_text().splitlines()
    best = max(float(row.split(",")[-1]) for row in history[1:])
    assert metrics["f1"] == best


def test_the_best_averaged_weights_are_evaluated_at_the_end(
    tiny_config, tmp_path, monkeypatch, uncompiled
):
    falling = itertools.count(9.0, -1.0)

    def measured(*arguments, **options):
        return SimpleNamespace(metrics={"exact_match": 0.0, "f1": next(falling)})

    # The first evaluation is the best one.
    monkeypatch.setattr(trainer, "evaluate", measured)
    run = Run(tmp_path / "run")
    report = train_run(tiny_config, run)
    examples = report.examples
    found = evaluate(Reader.load(run.directory), examples, build_features(examples))
    expected = [found.answers[example.id][0] for example in examples]
    for answer, wanted in zip(report.answers, expected, strict=True):
        assert (answer.start, answer.end) == (wanted.start, wanted.end)
        assert answer.score == pytest.approx(wanted.score, rel=1e-4)


def test_what_is_said_besides_is_ours(trained):
    """TensorFlow has a lot to say about the machine when it is imported."""
    remark = r"(train|dev|vocabulary|model|steps|left out of training): .*"
    # Bars, the line that is cleared after one, and the way back up from the second.
    ours = rf"{remark}|.*%\|.*|\s*(\x1b\[A)?"
    # And what XLA says of the cache that this session of tests has it keep.
    ours += r"|E\d{4} .* cpu_aot_loader\.cc:.*"
    said = trained.errors.splitlines()
    assert [line for line in said if not re.fullmatch(ours, line)] == []
    assert "compiling for 32 tokens:   0%" in trained.errors


def test_output_shows_scores_answers_and_the_run_directory(trained, tiny_files):
    lines = trained.output.splitlines()
    metrics = json.loads((trained.directory / "metrics.json").read_text())
    (scores,) = [line for line in lines if line.startswith("exact match")]
    assert re.findall(r"\d+\.?\d*", scores.replace("F1", "")) == [
        f"{metrics['exact_match']:.1f}",
        f"{metrics['f1']:.1f}",
        "10",
    ]
    examples = {e.question: e for e in read_squad(tiny_files.dev).examples}
    questions = [line for line in lines if line.startswith("question:")]
    assert len(questions) == 5
    for i, line in enumerate(lines):
        if line in questions:
            example = examples[line.removeprefix("question:").strip()]
            gold, predicted = lines[i + 1 : i + 3]
            assert gold.removeprefix("gold:").strip() == example.answers[0].text
            assert predicted.removeprefix("predicted:").strip() in example.context
    assert lines[-1] == f"run directory: {trained.directory}"


def test_a_directory_that_another_training_took_meanwhile_is_left_alone(
    tiny_config, tmp_path
):
    run = Run(tmp_path)
    run.config_path.write_text("another")
    with pytest.raises(UserError, match="already holds a run"):
        train_run(tiny_config, run)
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


@pytest.mark.skipif(os.name != "posix", reason="there are no such locks")
def test_a_run_that_still_ends_is_not_resumed(
    trained, tiny_config, tmp_path, monkeypatch
):
    run = Run(tmp_path / "run")
    shutil.copytree(trained.directory, run.directory)
    # Nothing is read that the former process may still write.
    monkeypatch.setattr("qanet.training.session._train_run", None)
    with run.held(), pytest.raises(UserError, match="another process"):
        train_run(tiny_config, run, resume=True)


def test_a_dev_question_that_is_too_long_is_refused_before_the_first_step(
    tiny_config, tmp_path
):
    dev = tmp_path / "dev.json"
    write_squad(dev, [Example("long", "why " * 1001, "Bo.", (Span("Bo", 0),))])
    data = tiny_config.data.model_copy(update={"dev": str(dev)})
    run = Run(tmp_path / "run")
    with pytest.raises(UserError, match="question long has 1001 words"):
        train_run(tiny_config.model_copy(update={"data": data}), run)
    assert not run.directory.exists()


def test_does_not_go_on_with_other_data(trained, tiny_config, tiny_files, tmp_path):
    directory = tmp_path / "run"
    shutil.copytree(trained.directory, directory)
    data = tiny_config.data.model_copy(update={"train": str(tiny_files.dev)})
    config = tiny_config.model_copy(update={"data": data})
    before = {path: path.stat().st_mtime_ns for path in directory.rglob("*")}
    with pytest.raises(UserError, match="began with other training data"):
        train_run(config, Run(directory), resume=True)
    assert {path: path.stat().st_mtime_ns for path in directory.rglob("*")} == before


def test_starts_from_the_weights_and_words_of_another_run(
    trained, tiny_config, tiny_files, tmp_path, uncompiled
):
    # Dev in the place of train: a vocabulary of these data would have other words.
    changes = {
        "data": {"train": str(tiny_files.dev)},
        "training": {
            "start_from": str(trained.directory),
            "steps": 1,
            "evaluate_every": 1,
            "learning_rate": 1e-9,
        },
    }
    config = tiny_config.model_copy(
        update={
            name: getattr(tiny_config, name).model_copy(update=update)
            for name, update in changes.items()
        }
    )
    run, start = Run(tmp_path / "run"), Run(trained.directory)
    train_run(config, run)
    assert run.load_vocabulary().words == start.load_vocabulary().words
    with np.load(start.weights_path) as expected, np.load(run.weights_path) as found:
        assert found.keys() == expected.keys()
        for name in found:
            np.testing.assert_allclose(found[name], expected[name], atol=1e-7)


def test_what_is_left_out_is_told_of_each_training_set(
    tiny_config, tiny_files, tmp_path, caplog, uncompiled
):
    caplog.set_level("INFO", "qanet")
    examples = read_squad(tiny_files.dev).examples
    # More than data.answer_limit tokens.
    for number in (3, 7):
        whole = Span(examples[number].context, 0)
        examples[number] = replace(examples[number], answers=(whole,))
    path = tmp_path / "fr.json"
    write_squad(path, examples)
    mixed = {"augmented": {"fr": str(path)}, "mix": {"original": 1, "fr": 1}}
    config = tiny_config.model_copy(
        update={
            "data": tiny_config.data.model_copy(update=mixed),
            "training": tiny_config.training.model_copy(update={"steps": 1}),
        }
    )
    train_run(config, Run(tmp_path / "run"))
    counts = json.loads((tmp_path / "run" / "data.json").read_text())
    assert counts["train"]["left_out"] == 1
    assert counts["fr"]["left_out"] == 2
    assert any("left out of training: 3 questions" in line for line in caplog.messages)


class Watched(Run):
    """Where the metrics are there, the run is finished and not resumed."""

    def save_threshold(self, threshold):
        assert not self.metrics_path.exists()
        super().save_threshold(threshold)

    def save_metrics(self, metrics):
        # No other training begins before the last file is written.
        if os.name != "posix":
            return super().save_metrics(metrics)
        with pytest.raises(UserError, match="another process"), self.held():
            pass
        super().save_metrics(metrics)


@pytest.fixture
def doubting_config(tiny_config, tiny_files, tmp_path):
    """Trains and evaluates also on questions without an answer."""
    files = {}
    for split in ("train", "dev"):
        examples = read_squad(getattr(tiny_files, split)).examples
        none = [
            replace(e, id=f"{e.id}-none", question="Who?", answers=(), impossible=True)
            for e in examples
        ]
        files[split] = str(tmp_path / f"{split}.json")
        write_squad(files[split], examples + none)
    return tiny_config.model_copy(
        update={
            "data": tiny_config.data.model_copy(update={**files, "no_answer": True}),
            "training": tiny_config.training.model_copy(update={"steps": 2}),
        }
    )


def with_data(config, **changes):
    data = config.data.model_copy(update=changes)
    return config.model_copy(update={"data": data})


def test_epochs_count_the_original_questions():
    config = Config.model_validate(
        {
            "data": {
                "augmented": {"fr": "fr.json"},
                "mix": {"original": 3, "fr": 1},
            },
            "training": {"steps": 10, "batch_size": 6},
        }
    )
    trainer = SimpleNamespace(
        config=config,
        data=SimpleNamespace(sources={"original": 37, "fr": 500}),
        left_out={"original": 7, "fr": 100},
    )
    # An epoch has the 30 that are learned and, of the others, 10.
    assert _epochs(trainer) == 1.5


def test_unanswerable_questions_that_nobody_learns_from_are_told(
    doubting_config, tmp_path, caplog, uncompiled
):
    data = doubting_config.data.model_copy(update={"no_answer": False})
    config = doubting_config.model_copy(update={"data": data})
    train_run(config, Run(tmp_path / "run"))
    assert any("25 questions have no answer" in line for line in caplog.messages)


def test_no_answer_is_trained_and_its_threshold_kept(
    doubting_config, tmp_path, caplog, uncompiled
):
    caplog.set_level("INFO", "qanet")
    run = Watched(tmp_path / "run")
    report = train_run(doubting_config, run)
    metrics = json.loads(run.metrics_path.read_text())
    assert report.metrics == metrics
    assert (metrics["HasAns_total"], metrics["NoAns_total"]) == (10, 10)
    assert run.load_threshold() == metrics["threshold"]
    reader = Reader.load(run.directory)
    assert reader.threshold == metrics["threshold"]
    features = build_features(report.examples)
    best = evaluate(reader, report.examples, features, choose_threshold=True).metrics
    assert metrics["threshold"] == pytest.approx(best["threshold"], rel=1e-4)
    # All are trained on but for the one whose answer is too long.
    counts = json.loads((run.directory / "data.json").read_text())
    assert counts["train"]["left_out"] == 1
    assert counts["train"]["impossible"] == 25
    assert np.load(run.weights_path)["no_answer/logit"].item() != 0
    assert "dev: 20 questions, 5 paragraphs, 10 without an answer" in caplog.messages


def test_a_dev_of_one_kind_keeps_the_threshold_of_the_start(
    doubting_config, tiny_files, tmp_path, caplog, uncompiled
):
    first, second = Run(tmp_path / "first"), Run(tmp_path / "second")
    config = with_data(doubting_config, dev=str(tiny_files.dev))
    train_run(config, first)
    assert first.load_threshold() == 0.5
    assert any("the threshold stays 0.5" in line for line in caplog.messages)

    first.save_threshold(0.25)
    start = {"start_from": str(first.directory)}
    training = config.training.model_copy(update=start)
    config = config.model_copy(update={"training": training})
    train_run(with_data(config, train=str(tiny_files.train)), second)
    assert second.load_threshold() == 0.25
    assert second.load_metrics()["threshold"] == 0.25
    assert any(
        "nothing is learned of those without" in line for line in caplog.messages
    )


def test_what_was_read_is_told_where_nothing_of_it_can_be_learned(
    tiny_config, tiny_files, tmp_path, caplog
):
    caplog.set_level("INFO", "qanet")
    examples = read_squad(tiny_files.train).examples
    none = [replace(e, answers=(), impossible=True) for e in examples]
    write_squad(tmp_path / "none.json", none)
    config = with_data(tiny_config, train=str(tmp_path / "none.json"))
    with pytest.raises(UserError, match="original has no question to learn"):
        train_run(config, Run(tmp_path / "run"))
    assert any("25 questions have no answer" in line for line in caplog.messages)
