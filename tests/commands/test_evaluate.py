"""Tests of qanet.commands.evaluate."""

import json
import os
import shutil
import sys

import pytest

from qanet import cli
from qanet.datasets.squad import Example, Span, read_squad, write_squad
from qanet.ensemble import Ensemble
from qanet.reader import Reader

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
    write_squad(path, examples)
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
    ids = [example.id for example in read_squad(tiny_files.dev).examples]
    path = write_predictions(tmp_path / "predictions.json", dict.fromkeys(ids, "no"))
    cli.evaluate(["--predictions", str(path), "--data", str(tiny_files.dev)])
    printed = capsys.readouterr()
    (line,) = printed.out.splitlines()
    assert json.loads(line) == {"exact_match": 0.0, "f1": 0.0, "total": 10}
    assert printed.err == ""


@pytest.mark.parametrize("option", [[], ["--quiet"]])
def test_predictions_that_do_not_fit_are_told(capsys, tiny_files, tmp_path, option):
    first, *_ = read_squad(tiny_files.dev).examples
    predictions = {first.id: first.answers[0].text, "x": "", "y": "", "z": ""}
    path = write_predictions(tmp_path / "predictions.json", predictions)
    cli.evaluate(["--predictions", str(path), "--data", str(tiny_files.dev), *option])
    printed = capsys.readouterr()
    assert last_line(printed.out)["f1"] == 10
    (line,) = printed.err.splitlines()
    assert line.startswith(f"warning: {path}: 9 of 10 questions have no prediction")
    assert "3 predictions are for no question" in line


@pytest.mark.parametrize("predictions", [{}, {"x": "Rome", "y": "Rome"}])
def test_predictions_of_other_data_are_refused(
    refused, tiny_files, tmp_path, predictions
):
    path = write_predictions(tmp_path / "predictions.json", predictions)
    line = refused(cli.evaluate, "--predictions", path, "--data", tiny_files.dev)
    assert f"{path}: has no prediction for any question of {tiny_files.dev}" in line


def test_gold_answers_that_are_not_there_are_told(capsys, squad_2, tmp_path):
    data = tmp_path / "data.json"
    data.write_text(squad_2.read_text().replace('"text": "Rome"', '"text": "Oslo"'))
    path = write_predictions(tmp_path / "predictions.json", {"1": "Rome", "2": ""})
    cli.evaluate(["--predictions", str(path), "--data", str(data)])
    assert capsys.readouterr().err == (
        f"warning: {data}: 1 of 1 gold answers are not in their context\n"
    )


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


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_report_on_predictions_without_tensorflow(door, squad_2, tmp_path):
    directory = tmp_path / "predicted"
    directory.mkdir()
    path = write_predictions(directory / "mine.json", {"1": "Rome", "2": "Rome"})
    process = door(
        *("evaluate.py", "--predictions", path, "--data", squad_2, "--report"),
        blocked=HEAVY,
    )
    assert process.returncode == 0, process.stderr
    *table, _ = process.stdout.splitlines()
    assert [line.split() for line in table] == [
        ["questions", "exact", "match", "F1"],
        ["all", "2", "50.0", "50.0"],
        ["question", "word"],
        ["where", "1", "100.0", "100.0"],
        ["why", "1", "0.0", "0.0"],
        ["answer", "tokens"],
        ["1", "1", "100.0", "100.0"],
        ["no", "answer", "1", "0.0", "0.0"],
        ["context", "tokens"],
        ["up", "to", "100", "2", "50.0", "50.0"],
    ]
    metrics = last_line(process.stdout)
    assert metrics["exact_match"] == 50
    assert names(directory) == ["mine.json", "report.json", "report.png"]
    report = json.loads((directory / "report.json").read_text("utf-8"))
    assert report["all"] == {"questions": 2, "exact_match": 50.0, "f1": 50.0}
    assert report["answer_tokens"]["no answer"]["questions"] == 1
    assert (directory / "report.png").read_bytes().startswith(b"\x89PNG")


def test_report_on_a_model_is_that_on_its_predictions(
    trained, loaded, tiny_files, tmp_path, capsys
):
    read, taken = tmp_path / "read", tmp_path / "taken"
    data = ["--data", str(tiny_files.dev), "--report", "--output"]
    cli.evaluate(["--model", str(trained.directory), *data, str(read)])
    of_model = capsys.readouterr().out
    assert names(read) == [
        *("metrics.json", "nbest.json", "predictions.json"),
        *("report.json", "report.png"),
    ]
    predictions = str(read / "predictions.json")
    cli.evaluate(["--predictions", predictions, *data, str(taken)])
    assert capsys.readouterr().out == of_model
    source = {
        "data": str(tiny_files.dev),
        "readers": [os.path.realpath(trained.directory)],
    }
    assert source | last_line(of_model) == json.loads(
        (read / "metrics.json").read_text()
    )
    assert names(taken) == ["report.json", "report.png"]
    for name in names(taken):
        assert (taken / name).read_bytes() == (read / name).read_bytes()


def test_several_readers_answer_as_one(two_readers, tiny_files, tmp_path):
    data = ["--data", str(tiny_files.dev), "--output", str(tmp_path / "both")]
    cli.evaluate(["--model", "run", "other", *data])
    found = json.loads((tmp_path / "both" / "predictions.json").read_bytes())
    examples = read_squad(tiny_files.dev).examples
    pairs = [(example.question, example.context) for example in examples]
    expected = Ensemble(two_readers).answer_many(pairs)
    assert list(found.values()) == [ranked[0].text for ranked in expected]
    alone = two_readers[0].answer_many(pairs)
    assert list(found.values()) != [ranked[0].text for ranked in alone]


def test_results_of_several_readers_want_a_place(refused, loaded, tiny_files):
    arguments = ["--model", "run", "run", "--data", tiny_files.dev]
    assert "--output" in refused(cli.evaluate, *arguments)


def test_report_without_matplotlib_is_refused_at_once(refused, monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, "qanet.evaluation.drawing", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    missing = tmp_path / "missing"
    for source in ("--model", "--predictions"):
        line = refused(cli.evaluate, source, missing, "--data", missing, "--report")
        assert "pip install matplotlib" in line


def test_output_of_predictions_alone_is_refused(refused, tiny_files, tmp_path):
    path = write_predictions(tmp_path / "predictions.json", {})
    arguments = ["--predictions", path, "--data", tiny_files.dev]
    line = refused(cli.evaluate, *arguments, "--output", tmp_path / "new")
    assert "--output goes with --model or --report" in line
    assert names(tmp_path) == ["predictions.json"]


def test_report_does_not_take_the_place_of_its_input(refused, tiny_files, tmp_path):
    data = tmp_path / "data" / "report.json"
    data.parent.mkdir()
    shutil.copy(tiny_files.dev, data)
    predictions = write_predictions(tmp_path / "report.json", {"a": "b"})
    arguments = ["--predictions", predictions, "--data", data, "--report"]
    assert str(predictions) in refused(cli.evaluate, *arguments)
    assert str(data) in refused(cli.evaluate, *arguments, "--output", data.parent)
    assert json.loads(predictions.read_text()) == {"a": "b"}
    assert data.read_bytes() == tiny_files.dev.read_bytes()


@pytest.mark.parametrize("name", ["report.json", "predictions.json", "na_prob.json"])
def test_results_do_not_take_the_place_of_the_data(
    refused, loaded, tiny_files, tmp_path, name
):
    data = tmp_path / name
    shutil.copy(tiny_files.dev, data)
    arguments = ["--model", "run", "--data", data, "--output", tmp_path]
    assert f"{data}: would be replaced" in refused(cli.evaluate, *arguments)
    assert data.read_bytes() == tiny_files.dev.read_bytes()


def test_report_where_it_cannot_be_written(refused, tiny_files, tmp_path):
    ids = [example.id for example in read_squad(tiny_files.dev).examples]
    predictions = write_predictions(
        tmp_path / "predictions.json", dict.fromkeys(ids, "")
    )
    arguments = ["--predictions", predictions, "--data", tiny_files.dev, "--report"]
    line = refused(cli.evaluate, *arguments, "--output", predictions)
    assert "is a file; give a directory" in line
    (tmp_path / "report.png").mkdir()
    line = refused(cli.evaluate, *arguments)
    assert f"{tmp_path / 'report.png'}: cannot be written: Is a directory" in line
    assert json.loads(predictions.read_text()).keys() == set(ids)


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


@pytest.mark.parametrize("place", ["file/new", "/proc/new"])
def test_evaluation_that_could_not_be_written_is_not_begun(
    refused, trained, monkeypatch, tiny_files, tmp_path, place
):
    monkeypatch.setattr(Reader, "load", None)
    (tmp_path / "file").write_text("precious")
    arguments = ["--model", trained.directory, "--data", tiny_files.dev]
    line = refused(cli.evaluate, *arguments, "--output", tmp_path / place)
    assert f"--output {tmp_path / place}: " in line


def test_results_have_a_directory_for_each_data_set(
    loaded, trained, tiny_files, tmp_path, monkeypatch
):
    run = tmp_path / "run"
    shutil.copytree(trained.directory, run)
    other = tmp_path / "other.v2.json"
    shutil.copy(tiny_files.dev, other)
    for data in (tiny_files.dev, other, tiny_files.dev):
        cli.evaluate(["--model", str(run), "--data", str(data)])
    assert names(run / "evaluation") == ["dev", "other.v2"]
    for data in (tiny_files.dev, other):
        metrics = (run / "evaluation" / data.stem / "metrics.json").read_text()
        assert json.loads(metrics)["data"] == str(data)
    # By its path from wherever it was read.
    monkeypatch.chdir(other.parent)
    cli.evaluate(["--model", str(run), "--data", other.name])


def test_results_of_other_data_are_kept(refused, loaded, tiny_files, tmp_path, capsys):
    arguments = ["--model", "run", "--output", tmp_path / "out"]
    cli.evaluate([*map(str, arguments), "--data", str(tiny_files.dev)])
    before = (tmp_path / "out" / "metrics.json").read_text()
    other = tmp_path / "dev.json"
    shutil.copy(tiny_files.dev, other)
    capsys.readouterr()
    line = refused(cli.evaluate, *arguments, "--data", other)
    assert f"holds the results of {tiny_files.dev}" in line
    assert (tmp_path / "out" / "metrics.json").read_text() == before
    # And those of another reader.
    shutil.copytree("run", tmp_path / "copy")
    of_copy = ["--model", tmp_path / "copy", *arguments[2:]]
    line = refused(cli.evaluate, *of_copy, "--data", tiny_files.dev)
    assert f"holds the results of {os.path.realpath('run')}; remove it" in line
    # Also those of the training, which may still be under way.
    arguments[-1] = "run"
    line = refused(cli.evaluate, *arguments, "--data", tiny_files.dev)
    assert line == "error: run: holds a run; give another --output"


@pytest.mark.parametrize("content", ["{}", "[]", "{", '{"data": null}'])
def test_results_of_nobody_are_kept(refused, loaded, tiny_files, tmp_path, content):
    metrics = tmp_path / "out" / "metrics.json"
    metrics.parent.mkdir()
    metrics.write_text(content)
    arguments = ["--model", "run", "--data", tiny_files.dev]
    line = refused(cli.evaluate, *arguments, "--output", metrics.parent)
    assert "holds results that name no data; remove it" in line
    assert metrics.read_text() == content


def test_results_of_a_former_version_are_replaced(loaded, tiny_files, tmp_path):
    """They name no readers."""
    metrics = tmp_path / "out" / "metrics.json"
    metrics.parent.mkdir()
    metrics.write_text(json.dumps({"data": str(tiny_files.dev)}))
    arguments = ["--model", "run", "--data", tiny_files.dev, "--output", metrics.parent]
    cli.evaluate([*map(str, arguments)])
    assert json.loads(metrics.read_text())["total"] == 10


@pytest.mark.parametrize("name", ["predictions.json", "report.png"])
def test_files_of_others_are_kept(refused, loaded, tiny_files, tmp_path, name):
    (tmp_path / name).write_text("mine")
    arguments = ["--model", "run", "--output", tmp_path, "--data", tiny_files.dev]
    line = refused(cli.evaluate, *arguments)
    assert f"{name}: would be replaced, and no evaluation" in line
    assert (tmp_path / name).read_text() == "mine"


def test_files_of_others_are_kept_where_results_go_by_default(
    refused, loaded, tiny_files, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "evaluation" / "dev" / "predictions.json"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    line = refused(cli.evaluate, "--data", tiny_files.dev)
    assert "predictions.json: would be replaced" in line
    assert path.read_text() == "mine"


def test_reports_of_other_predictions_are_kept(refused, tiny_files, tmp_path, capsys):
    output = tmp_path / "out"
    ids = [example.id for example in read_squad(tiny_files.dev).examples]
    one, other = (
        write_predictions(tmp_path / f"{name}.json", {ids[0]: name})
        for name in ("one", "other")
    )
    data = tmp_path / "data.json"
    shutil.copy(tiny_files.dev, data)
    given = ["--report", "--output", str(output), "--predictions"]
    for _ in range(2):
        cli.evaluate([*given, str(one), "--data", str(tiny_files.dev)])
    before = (output / "report.json").read_bytes()
    capsys.readouterr()
    line = refused(cli.evaluate, *given, other, "--data", tiny_files.dev)
    assert f"report.json: holds the results of {one}; remove it or" in line
    line = refused(cli.evaluate, *given, one, "--data", data)
    assert f"report.json: holds the results of {tiny_files.dev}; remove it" in line
    assert (output / "report.json").read_bytes() == before


def test_evaluation_with_damaged_weights(refused, trained, tiny_files, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(trained.directory, run)
    weights = run / "weights.npz"
    weights.write_bytes(weights.read_bytes()[:1000])
    line = refused(cli.evaluate, "--model", run, "--data", tiny_files.dev)
    assert "weights.npz: damaged" in line
