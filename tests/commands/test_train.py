"""Tests of qanet.commands.train."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from qanet import cli, shipped
from qanet.commands import start_from
from qanet.commands import train as command
from qanet.config import load_preset
from qanet.models.bert import BERTConfig
from qanet.run import Run


def test_unknown_preset(refused, tmp_path):
    line = refused(cli.train, "--preset", "qanet-huge", "--output", tmp_path / "run")
    assert "'qanet-huge'" in line
    assert "qanet-tiny" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("option", ["--train", "--dev", "--vectors"])
def test_a_packed_data_set_goes_alone(refused, tmp_path, option):
    run = tmp_path / "run"
    line = refused(cli.train, "--packed", "a", option, "b", "--output", run)
    assert "--packed takes the place of" in line
    assert not run.exists()


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
        ("training.decay=steep", "training.decay"),
        ("training.learning_rate=.nan", "training.learning_rate"),
        ("training.weight_decay=0.3", "nothing without training.optimizer=adamw"),
        ("model.contextual_layers=2", "nothing without model.contextual=DIRECTORY"),
        ("vocabulary.pieces=500", "nothing without a reader of word pieces"),
        ("vocabulary.extra_vectors=5", "nothing without vocabulary.vectors"),
    ],
)
def test_impossible_setting(refused, tmp_path, override, named):
    line = refused(cli.train, "--set", override, "--output", tmp_path / "run")
    assert named in line
    assert not (tmp_path / "run").exists()


def test_two_packed_data_sets(refused, tmp_path):
    given = ["--packed", "a", "--set", "data.packed=b", "--output", tmp_path / "run"]
    assert "give one of them" in refused(cli.train, *given)


@pytest.mark.parametrize(
    ("option", "key"),
    [
        ("--train", "data.train"),
        ("--dev", "data.dev"),
        ("--vectors", "vocabulary.vectors"),
    ],
)
def test_an_option_and_its_setting(refused, tmp_path, option, key):
    given = [option, "a", "--set", f"{key}=b", "--output", tmp_path / "run"]
    line = refused(cli.train, *given)
    assert f"--set {key}: is what {option} sets; give one of them" in line


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "--vectors a --set vocabulary.word_width=8",
            "vocabulary.word_width: changes nothing with vocabulary.vectors",
        ),
        (
            "--set training.optimizer=adadelta --set training.beta_1=0.5",
            "training.beta_1: changes nothing with training.optimizer=adadelta",
        ),
        (
            "--preset qanet-paper --set model.character_kernel=3",
            "model.character_kernel: changes nothing with model.character_filters=0",
        ),
        (
            "--set model.character_width=0 --set model.character_dropout=0.5",
            "model.character_dropout: changes nothing with model.character_width=0",
        ),
        (
            "--set training.warmup_steps=0 --set training.warmup=logarithmic",
            "training.warmup: changes nothing with training.warmup_steps=0",
        ),
        (
            "--preset bert --set model.pretrained=a --set vocabulary.pieces=500",
            "vocabulary.pieces: changes nothing with model.pretrained",
        ),
    ],
)
def test_a_setting_without_effect(refused, tmp_path, given, message):
    assert message in refused(cli.train, *given.split(), "--output", tmp_path / "run")


@pytest.mark.parametrize(("warmup_steps", "is_told"), [(7, False), (8, True)])
def test_a_warm_up_beyond_the_last_step_is_told(
    tmp_path, capsys, warmup_steps, is_told
):
    given = ["--dev", tmp_path / "absent", "--output", tmp_path / "run"]
    for setting in ("training.steps=7", f"training.warmup_steps={warmup_steps}"):
        given += ["--set", setting]
    with pytest.raises(SystemExit):
        cli.train(list(map(str, given)))
    assert ("never has its full rate" in capsys.readouterr().err) == is_told


@pytest.mark.parametrize("key", ["characters_per_word", "extra_vectors"])
def test_a_vocabulary_of_words_for_a_reader_of_word_pieces(refused, tmp_path, key):
    given = ["--preset", "bert", "--set", f"vocabulary.{key}=3"]
    line = refused(cli.train, *given, "--output", tmp_path / "run")
    assert f"vocabulary.{key}: changes nothing without a reader of words" in line


def test_vectors_for_a_reader_of_word_pieces(refused, tmp_path):
    run = tmp_path / "run"
    line = refused(
        cli.train, "--preset", "bert", "--vectors", "glove.txt", "--output", run
    )
    assert "glove.txt: bert reads word pieces" in line
    assert not run.exists()


def test_start_from_what_is_no_such_run(refused, tiny_arguments, tmp_path):
    for directory, problem in (
        (tmp_path / "missing", "not a run directory"),
        (shipped.SHIPPED, "is an export; give the run that it was made from"),
    ):
        start = f"training.start_from={directory}"
        run = tmp_path / "run"
        line = refused(cli.train, *tiny_arguments, "--set", start, "--output", run)
        assert f"{directory}: {problem}" in line
        assert not run.exists()


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        (["--preset", "bidaf"], "has model.name=qanet, not bidaf"),
        (["--set", "model.heads=4"], "has model.heads=2, not 4"),
        (["--set", "data.no_answer=true"], "has data.no_answer=False, not True"),
        (["--set", "model.contextual=elmo"], "has no model.contextual; leave it out"),
        (["--set", "vocabulary.extra_vectors=5"], "brings its vocabulary"),
        (["--set", " vocabulary={extra_vectors: 5}"], "brings its vocabulary"),
        (["--vectors", "glove.txt"], "brings its vocabulary"),
        (
            ["--preset", "bert-6", "--set", "model.pretrained=public"],
            "brings its weights",
        ),
    ],
)
def test_start_from_a_run_that_does_not_fit(
    refused, starting_arguments, trained, tmp_path, other, problem
):
    own = [] if "--preset" in other else starting_arguments
    start = f"training.start_from={trained.directory}"
    run = tmp_path / "run"
    line = refused(cli.train, *own, *other, "--set", start, "--output", run)
    assert f"{start}: {problem}" in line
    assert not run.exists()


def test_start_from_a_run_that_fits(starting_arguments, trained, tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(
        "qanet.training.session.train_run",
        lambda config, run, resume: started.append(config),
    )
    changes = (
        *("model.dropout=0.3", "model.word_dropout=0", "model.survival=0.5"),
        "model.character_dropout=0.2",
        f"training.start_from={trained.directory}",
    )
    sets = [part for change in changes for part in ("--set", change)]
    cli.train([*starting_arguments, *sets, "--output", str(tmp_path / "run")])
    (config,) = started
    assert (config.model.dropout, config.model.survival) == (0.3, 0.5)
    theirs = Run(trained.directory).load_config()
    assert config.vocabulary == theirs.vocabulary
    # They are not what the preset says.
    assert config.vocabulary != load_preset("qanet-tiny", []).vocabulary


@pytest.mark.parametrize(
    "setting",
    [
        "vocabulary.characters_per_word=8",
        "vocabulary={characters_per_word: 8}",
        "data.dev=dev.json",
        "data.augmented.fr=fr.json",
        "data={dev: dev.json}",
    ],
)
def test_what_a_packed_data_set_settles(refused, tmp_path, setting):
    path, run = tmp_path / "data.npz", tmp_path / "run"
    path.touch()
    arguments = ["--packed", path, "--set", setting, "--output", run]
    if "fr=" in setting:
        arguments += ["--set", "data.mix={original: 1, fr: 1}"]
    line = refused(cli.train, *arguments)
    assert f"--set {setting.partition('=')[0]}: the packed data set settles" in line


def test_what_a_packed_data_set_leaves_open(monkeypatch, tmp_path):
    started = []
    monkeypatch.setattr(
        "qanet.training.session.train_run",
        lambda config, run, resume: started.append(config),
    )
    path = tmp_path / "data.npz"
    path.touch()
    setting = ["--set", "vocabulary.word_width=8"]
    cli.train(["--packed", str(path), *setting, "--output", str(tmp_path / "run")])
    (config,) = started
    assert config.vocabulary.word_width == 8


@pytest.mark.parametrize("option", ["--train", "--dev", "--packed"])
def test_a_file_without_a_name(refused, tmp_path, option):
    line = refused(cli.train, option, "", "--output", tmp_path / "run")
    assert f"data.{option[2:]}='': string should have" in line


@pytest.mark.parametrize("option", ["--train", "--dev", "--vectors"])
def test_missing_file_to_train_with(refused, tmp_path, option):
    missing, run = tmp_path / "missing.json", tmp_path / "run"
    line = refused(cli.train, option, missing, "--output", run)
    assert str(missing) in line
    # So the mended command can be given as it stands.
    assert not (run / "config.json").exists()


@pytest.mark.parametrize("command", ["train", "pack"])
def test_own_data_without_a_dev_set(refused, tiny_files, tmp_path, command):
    """They would be measured on SQuAD, after a download, and the weights chosen so."""
    given = [command, "--preset", "qanet-small", "--output", tmp_path / "new"]
    for train in (
        ["--train", tiny_files.train],
        ["--set", f"data.train={tiny_files.train}"],
    ):
        line = refused(cli.main, *given, *train)
        assert f"--train {tiny_files.train}: give --dev too" in line
        assert "the preset's are squad" in line
    # All else is fine with these.
    vectors = ["--vectors", tmp_path / "absent"]
    for dev in (["--dev", tiny_files.dev], ["--set", f"data.dev={tiny_files.dev}"]):
        line = refused(cli.main, *given, "--train", tiny_files.train, *dev, *vectors)
        assert "absent: cannot be read" in line


def test_malformed_squad_file_to_train_with(refused, tiny_files, tmp_path):
    path = tmp_path / "broken.json"
    document = json.loads(tiny_files.train.read_text(encoding="utf-8"))
    qas = document["data"][0]["paragraphs"][3]["qas"]
    del qas[1]["question"]
    path.write_text(json.dumps(document), encoding="utf-8")
    given = ["--train", path, "--dev", tiny_files.dev]
    line = refused(cli.train, *given, "--output", tmp_path / "run")
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


@pytest.mark.parametrize("place", ["file/new", "/proc/new", "/dev/null"])
def test_output_that_could_not_be_written(
    refused, tiny_arguments, monkeypatch, tmp_path, place
):
    monkeypatch.setattr(command, "load_keras", None)
    (tmp_path / "file").touch()
    output = tmp_path / place
    line = refused(cli.train, *tiny_arguments, "--output", output)
    assert f"--output {output}: " in line


def test_resume_of_a_finished_run_tells_its_scores(trained, monkeypatch, capsys):
    monkeypatch.setattr(command, "load_keras", None)
    cli.train(["--resume", "--output", str(trained.directory)])
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{trained.directory}: finished, there is nothing to resume"
    assert second in trained.output.splitlines()
    assert second.startswith("exact match ")


def test_resume_of_a_run_with_damaged_metrics(refused, trained, tmp_path):
    shutil.copy(trained.directory / "config.json", tmp_path)
    for content in ("", "[]", '{"f1": 1}', '{"exact_match": 1, "f1": "x", "total": 1}'):
        (tmp_path / "metrics.json").write_text(content)
        line = refused(cli.train, "--resume", "--output", tmp_path)
        assert f"{tmp_path / 'metrics.json'}: damaged; remove it" in line


@pytest.fixture
def started(tmp_path, trained, monkeypatch):
    """Makes the directory of a run that was started so many seconds ago."""
    monkeypatch.chdir(tmp_path)

    def start(name, ago):
        directory = tmp_path / "runs" / name
        shutil.copytree(trained.directory, directory)
        times = (time.time() - ago,) * 2
        os.utime(directory / "config.json", times)
        return directory

    return start


def test_resume_takes_the_newest_run_of_the_preset(started, capsys):
    started("qanet-tiny", 30)
    started("qanet-tiny-2", 10)
    started("qanet-tiny-10", 20)
    # Not of this preset, not by this program, not started.
    started("qanet-tiny-old", 1)
    started("qanet", 1)
    Path("runs/qanet-tiny-11").mkdir()
    cli.train(["--resume"])
    assert "runs/qanet-tiny-2: finished" in capsys.readouterr().out


def test_presets_whose_names_look_like_numbered_runs(started, refused):
    started("bert-6", 1)
    line = refused(cli.train, "--resume", "--preset", "bert")
    assert "runs/bert: there is no run of this preset to resume" in line
    for name in ("bert", "bert-2", "bert-3", "bert-4", "bert-5"):
        (Path("runs") / name).mkdir()
    assert command._new_directory(Path("runs/bert")).name == "bert-7"


def test_resume_says_which_run_it_takes(started, monkeypatch, capsys):
    directory = started("qanet-tiny-2", 0)
    (directory / "metrics.json").unlink()
    resumed = []

    def train_run(config, run, resume):
        resumed.append((str(run.directory), resume))

    monkeypatch.setattr("qanet.training.session.train_run", train_run)
    cli.train(["--resume"])
    assert resumed == [("runs/qanet-tiny-2", True)]
    assert capsys.readouterr().err == "resuming runs/qanet-tiny-2\n"
    cli.train(["--resume", "--quiet"])
    assert capsys.readouterr().err == ""


def test_resume_where_the_preset_has_no_run(refused, started):
    started("qanet-tiny", 0)
    line = refused(cli.train, "--resume", "--preset", "qanet")
    assert "runs/qanet: there is no run of this preset to resume" in line


def test_a_fine_tuned_bert_may_have_begun_with_public_weights():
    changes = {"pretrained": "public", "dropout": 0.3, "attention_dropout": 0.2}
    one, other = BERTConfig(), BERTConfig().model_copy(update=changes)
    assert start_from._layers(one) == start_from._layers(other)
    more = one.model_copy(update={"blocks": one.blocks + 1})
    assert start_from._layers(one) != start_from._layers(more)


def test_several_machines_need_a_directory_that_all_see(
    refused, tiny_arguments, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    task = {"type": "worker", "index": 0}
    cluster = {"cluster": {"worker": ["localhost:1", "localhost:2"]}, "task": task}
    monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))
    strategy = "distribution.strategy=multi_worker"
    arguments = [*tiny_arguments, "--set", strategy]
    assert f"{strategy}: give --output" in refused(cli.train, *arguments)
    line = refused(cli.train, *arguments, "--set", "model.contextual=encoder")
    assert "model.contextual: the workers of" in line


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
        ("--packed", "x.npz"),
    ],
)
def test_resume_with_other_settings(refused, trained, option):
    line = refused(cli.train, "--resume", "--output", trained.directory, *option)
    assert line.startswith(f"error: {option[0]} does not go with --resume")


def test_new_runs_do_not_share_a_directory(tmp_path):
    wanted = tmp_path / "qanet-tiny"
    made = []
    for _ in range(3):
        made.append(command._new_directory(wanted))
        made[-1].mkdir()
    assert [path.name for path in made] == [
        "qanet-tiny",
        "qanet-tiny-2",
        "qanet-tiny-3",
    ]
