"""Tests of qanet.commands.evaluate."""

import json
import shutil

import pytest

from qanet import cli
from qanet.datasets.squad import Example, Span, read_squad, write_squad

QUESTION = "Where does Zoë live?"
CONTEXT = "Bo’ lives in Rome.\nZoë lives in São Paulo.\n"
# What it takes to compute with a model.
HEAVY = ("tensorflow", "keras", "jax", "torch", "tensorflow_datasets")


@pytest.fixture
def squad_2(tmp_path):
    """A SQuAD 2.0 file with an answer, and a question without one."""
    context = "Zoë lives in Rome."
    path = tmp_path / "squad2.json"
    examples = [
        Example("1", QUESTION, context, (Span("Rome", 13),)),
        Example("2", "Why?", context, (), impossible=True),
    ]
    write_squad(path, examples, "v2.0")
    return path


def last_line(output):
    return json.loads(output.splitlines()[-1])


def write_predictions(path, predictions):
    path.write_text(json.dumps(predictions), encoding="utf-8")
    return path


def test_predictions_are_scored_without_tensorflow(door, tiny_files, tmp_path):
    examples = read_squad(tiny_files.dev).examples
    golds = {example.id: example.answers[0].text for example in examples}
    # One wrong, one without a prediction: 8 of 10 remain.
    first, second, *_ = golds
    golds[first] = "nowhere"
    del golds[second]
    path = write_predictions(tmp_path / "predictions.json", golds)
    process = door(
        *("evaluate.py", "--predictions", path, "--data", tiny_files.dev),
        blocked=HEAVY,
    )
    assert process.returncode == 0, process.stderr
    assert last_line(process.stdout) == {"exact_match": 80.0, "f1": 80.0, "total": 10}


def test_scoring_prints_one_line(capsys, tiny_files, tmp_path):
    path = write_predictions(tmp_path / "predictions.json", {})
    cli.evaluate(["--predictions", str(path), "--data", str(tiny_files.dev)])
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line) == {"exact_match": 0.0, "f1": 0.0, "total": 10}


def test_squad_2_predictions_are_scored_as_such(capsys, squad_2, tmp_path):
    path = write_predictions(tmp_path / "predictions.json", {"1": "Rome", "2": "Rome"})
    cli.evaluate(["--predictions", str(path), "--data", str(squad_2)])
    metrics = last_line(capsys.readouterr().out)
    assert metrics["exact_match"] == metrics["f1"] == 50
    assert metrics["total"] == 2


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}', "{'a': 'b'}"])
def test_malformed_predictions(refused, tiny_files, tmp_path, content):
    path = tmp_path / "predictions.json"
    path.write_text(content)
    line = refused(cli.evaluate, "--predictions", path, "--data", tiny_files.dev)
    assert str(path) in line


def test_missing_predictions_and_data(refused, tiny_files, tmp_path):
    missing = tmp_path / "missing.json"
    predictions = write_predictions(tmp_path / "predictions.json", {})
    for pair in ((missing, tiny_files.dev), (predictions, missing)):
        line = refused(cli.evaluate, "--predictions", pair[0], "--data", pair[1])
        assert str(missing) in line


def test_evaluation_writes_its_files_and_prints_the_scores_last(
    trained, loaded, tiny_files, tmp_path, capsys
):
    output = tmp_path / "evaluation"
    data = ["--data", str(tiny_files.dev)]
    cli.evaluate(["--model", str(trained.directory), "--output", str(output), *data])
    metrics = last_line(capsys.readouterr().out)
    assert list(metrics) == ["exact_match", "f1", "total"]
    assert metrics["total"] == 10
    assert metrics == json.loads((trained.directory / "metrics.json").read_text())

    nbest = json.loads((output / "nbest.json").read_text(encoding="utf-8"))
    predictions = json.loads((output / "predictions.json").read_text("utf-8"))
    for example in read_squad(tiny_files.dev).examples:
        ranked = nbest[example.id]
        assert len(ranked) == 20
        assert ranked[0]["text"] == predictions[example.id]
        assert all(
            example.context[answer["start"] : answer["end"]] == answer["text"]
            for answer in ranked
        )
    cli.evaluate(["--predictions", str(output / "predictions.json"), *data])
    assert last_line(capsys.readouterr().out) == metrics


def test_evaluation_of_squad_2_counts_every_question(
    trained, loaded, squad_2, tmp_path, capsys
):
    arguments = ["--model", trained.directory, "--data", squad_2, "--output", tmp_path]
    cli.evaluate([str(argument) for argument in arguments])
    metrics = last_line(capsys.readouterr().out)
    assert metrics["total"] == 2
    assert {"exact_match", "f1"} <= metrics.keys()


def test_evaluation_of_no_run(refused, tiny_files, tmp_path):
    line = refused(cli.evaluate, "--model", tmp_path, "--data", tiny_files.dev)
    assert "not a run directory" in line


def test_evaluation_of_a_missing_or_malformed_file(refused, trained, loaded, tmp_path):
    path = tmp_path / "dev.json"
    line = refused(cli.evaluate, "--model", trained.directory, "--data", path)
    assert str(path) in line
    path.write_text('{"data": 3}')
    line = refused(cli.evaluate, "--model", trained.directory, "--data", path)
    assert str(path) in line


def test_evaluation_into_a_file(refused, trained, loaded, tiny_files, tmp_path):
    path = tmp_path / "file"
    path.write_text("precious")
    arguments = ["--model", trained.directory, "--data", tiny_files.dev]
    assert str(path) in refused(cli.evaluate, *arguments, "--output", path)
    assert path.read_text() == "precious"


def test_evaluation_with_damaged_weights(refused, trained, tiny_files, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(trained.directory, run)
    weights = run / "weights.npz"
    weights.write_bytes(weights.read_bytes()[:1000])
    line = refused(cli.evaluate, "--model", run, "--data", tiny_files.dev)
    assert "weights.npz: damaged" in line
