"""Tests of qanet.cli: what each door accepts, prints and refuses."""

import io
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from qanet import cli
from qanet.datasets.squad import Example, Span, read_squad, write_squad
from qanet.datasets.training_data import load_compact
from qanet.reader import Reader

QUESTION = "Where does Zoë live?"
CONTEXT = "Bo’ lives in Rome.\nZoë lives in São Paulo.\n"
# What it takes to compute with a model.
HEAVY = ("tensorflow", "keras", "jax", "torch", "tensorflow_datasets")


@pytest.fixture
def refused(capsys):
    """Runs a command that must end with code 2 and one line, which it returns."""

    def run(command, *arguments):
        with pytest.raises(SystemExit) as caught:
            command([str(argument) for argument in arguments])
        assert caught.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("error: ")
        assert len(line) > len("error: ")
        return line

    return run


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


@pytest.fixture
def context_file(tmp_path):
    path = tmp_path / "context.txt"
    path.write_bytes(CONTEXT.encode())
    return path


@pytest.fixture
def loaded(monkeypatch, trained_reader):
    """Loads every run as the trained reader that is there already."""
    monkeypatch.setattr(Reader, "load", lambda run: trained_reader)


def last_line(output):
    return json.loads(output.splitlines()[-1])


# Help and mistakes need no model.


@pytest.mark.parametrize(
    "command",
    [
        ["train.py"],
        ["evaluate.py"],
        ["-m", "qanet"],
        ["-m", "qanet", "answer"],
        ["-m", "qanet", "features"],
        ["-m", "qanet", "augment"],
        ["-m", "qanet", "translate"],
        ["-m", "qanet", "translate", "train"],
        ["-m", "qanet", "translate", "run"],
    ],
    ids=" ".join,
)
def test_help_waits_for_nothing_heavy(door, command):
    process = door(*command, "--help", blocked=(*HEAVY, "numpy"))
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("usage: ")
    assert process.stderr == ""


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (cli.train, ["--no-such-option"]),
        (cli.evaluate, ["--data", "dev.json"]),
        (cli.evaluate, ["--model", "run"]),
        (cli.evaluate, ["--model", "a", "--predictions", "b", "--data", "c"]),
        (cli.main, []),
        (cli.main, ["no-such-command"]),
        (cli.main, ["answer", "--model", "run"]),
        (
            cli.main,
            "answer --model a --context-file b --question c --top-k 0".split(),
        ),
        (cli.main, ["augment", "--input", "train.json"]),
        (cli.main, ["augment", "--threshold", "1.5"]),
        (
            cli.main,
            "augment --input a --output b --forward c --backward d --seed x".split(),
        ),
        (
            cli.main,
            "augment --input a --output b --forward c --backward d -- --x".split(),
        ),
        (cli.main, "answer --model a --context-file b --question c --".split()),
    ],
)
def test_wrong_usage_ends_with_code_2(command, arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        command(arguments)
    assert caught.value.code == 2
    assert "usage: " in capsys.readouterr().err


def test_unknown_preset(refused, tmp_path):
    line = refused(cli.train, "--preset", "qanet-huge", "--output", tmp_path / "run")
    assert "'qanet-huge'" in line
    assert "qanet-tiny" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("option", ["--train", "--dev", "--vectors"])
def test_features_go_alone(refused, tmp_path, option):
    run = tmp_path / "run"
    line = refused(cli.train, "--features", "a", option, "b", "--output", run)
    assert "--features takes the place of" in line
    assert not run.exists()


def test_features_keep_the_words_of_the_data_unless_told_otherwise(
    tiny_files, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("elsewhere 1 2\nlives 3 4\n", encoding="utf-8")
    arguments = ["features", "--train", tiny_files.train, "--dev", tiny_files.dev]
    arguments += ["--vectors", vectors, "--output", "data.npz"]
    for options, words in (
        ([], ["lives"]),
        (["--set", "vocabulary.extra_vectors=1"], ["elsewhere", "lives"]),
    ):
        cli.main([str(argument) for argument in [*arguments, *options]])
        assert load_compact("data.npz").vocabulary.words[2:] == words
        assert f"{2 + len(words)} words" in capsys.readouterr().out


def test_features_of_a_missing_file(refused, tmp_path):
    path, output = tmp_path / "train.json", tmp_path / "data.npz"
    line = refused(cli.main, "features", "--train", path, "--output", output)
    assert str(path) in line
    assert not output.exists()


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("training.stepz=5", "training.stepz"),
        ("colour.red=5", "colour"),
        ("training.steps=many", "training.steps"),
        ("training.steps=1.5", "training.steps"),
        ("training.steps=0", "training.steps"),
        ("model.heads=5", "heads=5 does not divide width"),
        ("model.dropout=1.5", "model.dropout=1.5"),
        ("model.dropout=-0.1", "model.dropout"),
        ("training.steps", "key=value"),
        ("training.steps.more=3", "training.steps"),
        ("model=3", "model"),
        ("data.buckets=[", "data.buckets"),
        ("training.decay=linear", "training.decay"),
        ("training.learning_rate=.nan", "training.learning_rate"),
    ],
)
def test_impossible_setting(refused, tmp_path, override, named):
    line = refused(cli.train, "--set", override, "--output", tmp_path / "run")
    assert named in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("option", ["--train", "--dev", "--vectors"])
def test_missing_file_to_train_with(refused, tiny_arguments, tmp_path, option):
    missing, run = tmp_path / "missing.json", tmp_path / "run"
    line = refused(cli.train, *tiny_arguments, option, missing, "--output", run)
    assert str(missing) in line
    # So the mended command can be given as it stands.
    assert not (run / "config.json").exists()


def test_malformed_squad_file_to_train_with(refused, tiny_files, tmp_path):
    path = tmp_path / "broken.json"
    document = json.loads(tiny_files.train.read_text(encoding="utf-8"))
    qas = document["data"][0]["paragraphs"][3]["qas"]
    del qas[1]["question"]
    path.write_text(json.dumps(document), encoding="utf-8")
    line = refused(cli.train, "--train", path, "--output", tmp_path / "run")
    for part in (str(path), "'Homes'", "paragraphs[3]", "qas[1]", qas[1]["id"]):
        assert part in line
    assert "'question' is missing" in line


def test_output_that_already_holds_a_run(refused, trained, tiny_arguments):
    before = (trained.directory / "weights.npz").read_bytes()
    line = refused(cli.train, *tiny_arguments, "--output", trained.directory)
    assert str(trained.directory) in line
    assert "--resume" in line
    assert (trained.directory / "weights.npz").read_bytes() == before


def test_output_that_is_a_file(refused, tiny_arguments, tmp_path):
    path = tmp_path / "file"
    path.write_text("precious")
    assert str(path) in refused(cli.train, *tiny_arguments, "--output", path)
    assert path.read_text() == "precious"


def test_resume_without_a_run(refused, tmp_path):
    line = refused(cli.train, "--resume", "--output", tmp_path / "nowhere")
    assert "not a run directory" in line
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "option",
    [
        ("--set", "training.steps=9"),
        ("--train", "x.json"),
        ("--dev", "x.json"),
        ("--vectors", "x.txt"),
    ],
)
def test_resume_with_other_settings(refused, trained, option):
    line = refused(cli.train, "--resume", "--output", trained.directory, *option)
    assert line.startswith(f"error: {option[0]} does not go with --resume")


def test_new_runs_do_not_share_a_directory(tmp_path):
    wanted = tmp_path / "qanet-tiny"
    made = []
    for _ in range(3):
        made.append(cli._new_directory(wanted))
        made[-1].mkdir()
    assert [path.name for path in made] == [
        "qanet-tiny",
        "qanet-tiny-2",
        "qanet-tiny-3",
    ]


def test_ctrl_c_ends_without_a_traceback(monkeypatch, capsys, context_file):
    def interrupted(run):
        raise KeyboardInterrupt

    monkeypatch.setattr(Reader, "load", interrupted)
    arguments = ["answer", "--model", "run", "--question", "who?"]
    with pytest.raises(SystemExit) as caught:
        cli.main([*arguments, "--context-file", str(context_file)])
    assert caught.value.code == 130
    assert capsys.readouterr().err == "stopped\n"


# Scoring a predictions file.


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


def test_a_mistake_prints_one_line_in_a_real_process(door, tmp_path):
    path = tmp_path / "dev.json"
    path.write_text('{"data": [{"title": "Kraków", "paragraphs": 3}]}', "utf-8")
    process = door("evaluate.py", "--predictions", path, "--data", path)
    assert process.returncode == 2
    assert process.stdout == ""
    (line,) = process.stderr.splitlines()
    assert line.startswith("error: ")


# Reading with a model.


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


def answer(capsys, *arguments):
    cli.main(["answer", "--model", "run", "--question", QUESTION, *map(str, arguments)])
    return capsys.readouterr().out


def test_answer_prints_the_best_answers(loaded, trained_reader, tmp_path, capsys):
    path = tmp_path / "context.txt"
    path.write_text("Bo’ lives in Rome, Zoë in São Paulo.", encoding="utf-8")
    output = answer(capsys, "--context-file", path, "--top-k", 2)
    expected = trained_reader.answer(QUESTION, path.read_text("utf-8"), top_k=2)
    assert output.splitlines() == [f"{a.score:6.1%}  {a.text}" for a in expected]
    output = answer(capsys, "--context-file", path)
    assert output == f"{expected[0].score:6.1%}  {expected[0].text}\n"


def test_an_answer_over_a_line_break_is_one_line(
    loaded, trained_reader, tmp_path, capsys
):
    path = tmp_path / "context.txt"
    path.write_text("Bo\nRome", encoding="utf-8")
    output = answer(capsys, "--context-file", path, "--top-k", 20)
    assert "Bo Rome" in output
    assert all("%" in line for line in output.splitlines())


@pytest.mark.parametrize("count", ["0", "-1", "many"])
def test_top_k_is_a_number_of_at_least_1(count, context_file, capsys):
    with pytest.raises(SystemExit) as exit:
        answer(capsys, "--context-file", context_file, "--top-k", count)
    assert exit.value.code == 2
    assert f"'{count}' is not a number of at least 1" in capsys.readouterr().err


def test_answer_prints_json(loaded, context_file, trained_reader, capsys):
    output = answer(capsys, "--context-file", context_file, "--top-k", 3, "--json")
    records = [json.loads(line) for line in output.splitlines()]
    expected = trained_reader.answer(QUESTION, CONTEXT, top_k=3)
    assert len(records) == 3
    for record, wanted in zip(records, expected, strict=True):
        assert list(record) == ["text", "start", "end", "score"]
        assert record["text"] == wanted.text
        assert CONTEXT[record["start"] : record["end"]] == record["text"]
        assert record["score"] == pytest.approx(wanted.score)


def test_answer_counts_the_characters_of_the_file_as_it_is(loaded, tmp_path, capsys):
    """Line ends of Windows are two characters."""
    text = CONTEXT.replace("\n", "\r\n")
    path = tmp_path / "windows.txt"
    path.write_bytes(text.encode())
    output = answer(capsys, "--context-file", path, "--top-k", 20, "--json")
    for line in output.splitlines():
        record = json.loads(line)
        assert text[record["start"] : record["end"]] == record["text"]


def test_answer_reads_standard_input(loaded, context_file, monkeypatch, capsys):
    expected = answer(capsys, "--context-file", context_file, "--json")
    piped = io.TextIOWrapper(io.BytesIO(CONTEXT.encode()), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", piped)
    assert answer(capsys, "--context-file", "-", "--json") == expected


def test_answer_prints_text_of_any_script(loaded, tmp_path, capsys):
    path = tmp_path / "context.txt"
    path.write_text("東京", encoding="utf-8")
    output = answer(capsys, "--context-file", path, "--top-k", 3, "--json")
    assert "東" in output
    assert {json.loads(line)["text"] for line in output.splitlines()} == {
        "東",
        "京",
        "東京",
    }


def test_answer_refuses_mistakes(refused, loaded, tmp_path):
    arguments = ["answer", "--model", tmp_path, "--question", QUESTION]
    path = tmp_path / "context.txt"
    line = refused(cli.main, *arguments, "--context-file", path)
    assert str(path) in line
    path.write_bytes(b"caf\xe9")
    line = refused(cli.main, *arguments, "--context-file", path)
    assert str(path) in line
    assert "UTF-8" in line
    path.write_text(" \n")
    assert "context" in refused(cli.main, *arguments, "--context-file", path)
    path.write_text("text")
    arguments[-1] = " "
    assert "question" in refused(cli.main, *arguments, "--context-file", path)


def test_answer_without_a_run(refused, context_file, tmp_path):
    arguments = ["answer", "--model", tmp_path, "--question", QUESTION]
    line = refused(cli.main, *arguments, "--context-file", context_file)
    assert "not a run directory" in line


# A data set in other words.


class Polite:
    """Translates by adding a word; stopped by Ctrl-C after some batches."""

    batch_size = 10

    def __init__(self, name):
        self.name = name
        self.asked = []
        self.batches_left = None

    def translate(self, sentences, count):
        if self.batches_left == 0:
            raise KeyboardInterrupt
        if self.batches_left:
            self.batches_left -= 1
        self.asked += sentences
        return [[f"{self.name}, {sentence}"] for sentence in sentences]


@pytest.fixture
def translators(monkeypatch):
    """Those that `--forward please` and `--backward thanks` open."""
    named = {name: Polite(name) for name in ("please", "thanks")}
    monkeypatch.setattr("qanet.translation.translator.open_translator", named.get)
    return named


@pytest.fixture
def augmenting(tiny_files, tmp_path):
    """Arguments of `augment`, its output the last of them."""
    return [
        *("augment", "--input", str(tiny_files.train)),
        *("--forward", "please", "--backward", "thanks"),
        *("--output", str(tmp_path / "new" / "train.json")),
    ]


def test_augment_writes_a_data_set_and_a_report(
    translators, augmenting, tiny_files, capsys
):
    cli.main(augmenting)
    path = Path(augmenting[-1])
    augmented = read_squad(path)
    originals = read_squad(tiny_files.train).examples
    assert [e.id for e in augmented.examples] == [e.id for e in originals]
    for new, old in zip(augmented.examples, originals, strict=True):
        assert new.context == f"thanks, please, {old.context}"
        assert new.answers[0].text == old.answers[0].text
    assert augmented.counts["offsets_repaired"] == 0
    output = capsys.readouterr().out
    assert "25 questions, 100.0% kept" in output
    assert "25 questions, 100.0% kept" in path.with_suffix(".report.md").read_text()


def test_augment_goes_on_where_it_was_stopped(translators, augmenting, capsys):
    translators["please"].batches_left = 1
    with pytest.raises(SystemExit):
        cli.main(augmenting)
    assert not Path(augmenting[-1]).exists()
    first = list(translators["please"].asked)
    assert len(first) == 10
    translators["please"].batches_left = None
    cli.main(augmenting)
    asked = translators["please"].asked
    assert len(asked) == len(set(asked)) > 10
    cli.main([*augmenting, "--threshold", "0.5", "--seed", "7"])
    assert translators["please"].asked == asked


def test_augment_tries_out_a_few_contexts(translators, augmenting):
    cli.main([*augmenting, "--contexts", "3"])
    contexts = {example.context for example in read_squad(augmenting[-1]).examples}
    assert len(contexts) == 3


def test_augment_refuses_mistakes(refused, augmenting, tmp_path):
    output = Path(augmenting[-1])
    assert "'please'" in refused(cli.main, *augmenting)
    line = refused(cli.main, *augmenting, "--runner", "Direct", "--cache", "x")
    assert "--cache does not go with --runner" in line
    assert not output.parent.exists()


@pytest.mark.parametrize(
    "content", ["", "[]", '{"data": [{"paragraphs": [{"context": "", "qas": []}]}]}']
)
def test_augment_refuses_what_is_not_squad(
    refused, translators, augmenting, tmp_path, content
):
    path = tmp_path / "input.json"
    path.write_text(content)
    augmenting[2] = path
    assert str(path) in refused(cli.main, *augmenting)
    assert not Path(augmenting[-1]).parent.exists()


def test_augment_writes_nothing_where_nothing_is_kept(
    translators, augmenting, monkeypatch, capsys
):
    def translate(self, sentences, count):
        return [[re.sub(r"[^\W\d]", "x", sentence)] for sentence in sentences]

    monkeypatch.setattr(Polite, "translate", translate)
    with pytest.raises(SystemExit) as caught:
        cli.main([*augmenting, "--threshold", "1"])
    assert caught.value.code == 2
    # Above it are the progress bars.
    assert "no question kept its answer" in capsys.readouterr().err.splitlines()[-1]
    assert not Path(augmenting[-1]).exists()


# The whole path on the other backend.


def test_trains_and_evaluates_on_jax_where_tensorflow_cannot_be_imported(
    door, tiny_arguments, tiny_files, tmp_path
):
    run = tmp_path / "run"
    packed = tmp_path / "data.npz"
    jax = {"backend": "jax", "blocked": ["tensorflow"]}
    arguments = ["--preset", "qanet-tiny", *tiny_arguments, "--output", packed]
    process = door("-m", "qanet", "features", *arguments)
    assert process.returncode == 0, process.stderr
    assert f"{packed}: 25 questions to train on, 10 of dev" in process.stdout
    settings = tiny_arguments[4:]  # Without the two files.
    process = door("train.py", "--features", packed, *settings, "--output", run, **jax)
    assert process.returncode == 0, process.stderr
    assert len((run / "history.csv").read_text().splitlines()) == 1 + 3
    assert len(list((run / "checkpoints").iterdir())) == 2

    process = door("evaluate.py", "--model", run, "--data", tiny_files.dev, **jax)
    assert process.returncode == 0, process.stderr
    metrics = json.loads((run / "metrics.json").read_text())
    assert last_line(process.stdout) == metrics
    assert metrics["total"] == 10
    assert sorted(path.name for path in (run / "evaluation").iterdir()) == [
        "metrics.json",
        "nbest.json",
        "predictions.json",
    ]
    # What JAX has trained, TensorFlow reads.
    read = Reader.load(run)
    example = read_squad(tiny_files.dev).examples[0]
    predictions = json.loads((run / "evaluation" / "predictions.json").read_text())
    assert (
        read.answer(example.question, example.context).text == (predictions[example.id])
    )
