"""Tests of qanet.commands.pretrain."""

import shlex
from pathlib import Path

import pytest

from qanet import cli
from qanet.config import load_preset
from qanet.training import bilm_pretrainer, mlm_pretrainer

PUBLIC = Path(__file__).parents[1] / "models" / "public_bert"

METRICS = {
    "step": 9,
    "held_out_loss": 3.0,
    "masked_loss": 2.3456,
    "masked_accuracy": 0.5,
    "next_sentence_accuracy": 0.75,
}


@pytest.fixture
def trained(monkeypatch):
    """What the training was asked for, in its place."""
    calls = []

    def pretrain(config, run, resume):
        calls.append((config, run, resume))
        run.save_config(config)
        return METRICS

    monkeypatch.setattr(mlm_pretrainer, "pretrain_mlm", pretrain)
    return calls


def test_train_and_resume(trained, tmp_path, capsys):
    output = tmp_path / "a run"
    command = ["pretrain", "--objective", "mlm", "--output", str(output)]
    texts = [str(tmp_path / name) for name in ("a.json", "b.txt")]
    for path in texts:
        Path(path).touch()
    settings = ["training.steps=9", "model.width=64", "training.whole_words=true"]
    sets = [part for setting in settings for part in ("--set", setting)]
    cli.main([*command, "--text", *texts, *sets])
    ((config, run, resume),) = trained
    assert (config.objective, config.data.text) == ("mlm", tuple(texts))
    assert (config.training.steps, config.training.masked) == (9, 0.15)
    assert config.training.whole_words
    assert (config.model.width, config.model.blocks) == (64, 4)
    assert (run.directory, resume) == (output, False)
    held_out, encoder, tuning, positions = capsys.readouterr().out.splitlines()
    assert "loss of a masked piece 2.346, 50.0 %" in held_out
    assert "75.0 %" in held_out
    assert encoder == f"encoder: {output / 'encoder'}"
    assert "positions from 128 on" in positions
    # What is printed is a command, and fits the encoder.
    words = shlex.split(tuning.partition(": ")[2])
    assert words[:3] == ["python", "-m", "qanet"]
    arguments = words[3:]
    options = cli.make_parser().parse_args(arguments)
    model = load_preset(options.preset, options.set).model
    assert model.pretrained == str(output / "encoder")
    sizes = ("width", "blocks", "heads", "feed_forward")
    assert [getattr(model, size) for size in sizes] == [64, 4, 4, 1024]

    cli.main([*command, "--resume"])
    assert trained[1][0] == config
    assert trained[1][2]
    told = capsys.readouterr().out

    # Once it is finished nothing is trained, nor are the texts read.
    run.save_metrics(METRICS)
    for path in texts:
        Path(path).unlink()
    cli.main([*command, "--resume"])
    assert capsys.readouterr().out == (
        f"{output}: finished, there is nothing to resume\n{told}"
    )
    assert len(trained) == 2


def test_a_bidirectional_language_model(monkeypatch, tmp_path, capsys):
    calls = []

    def pretrain(config, run, resume):
        calls.append((config, run, resume))
        run.save_config(config)
        return {"step": 9, "perplexity": 123.456}

    monkeypatch.setattr(bilm_pretrainer, "pretrain_bilm", pretrain)
    (tmp_path / "a.txt").touch()
    output = tmp_path / "a run"
    command = ["pretrain", "--objective", "bilm", "--output", str(output)]
    text = ["--text", str(tmp_path / "a.txt"), "--set", "model.units=256"]
    cli.main([*command, *text])
    ((config, run, resume),) = calls
    assert (config.objective, config.model.units, resume) == ("bilm", 256, False)
    held_out, encoder, use = capsys.readouterr().out.splitlines()
    assert held_out == "held out, at step 9: perplexity 123.5"
    assert encoder == f"encoder: {run.encoder_directory}"
    _, _, _, *arguments = shlex.split(use.partition(": ")[2])
    options = cli.make_parser().parse_args(arguments)
    model = load_preset(options.preset, options.set).model
    assert model.contextual == str(output / "encoder")
    assert model.contextual_layers == 3

    cli.main([*command, "--resume"])
    assert calls[1][2]
    run.save_metrics({"step": 9, "perplexity": 123.456})
    cli.main([*command, "--resume"])
    assert "finished, there is nothing to resume" in capsys.readouterr().out
    assert len(calls) == 2


def test_a_run_of_another_objective_is_not_resumed(trained, tmp_path, refused):
    (tmp_path / "a.txt").touch()
    output = ["--output", str(tmp_path / "run")]
    cli.main(
        ["pretrain", "--objective", "mlm", "--text", str(tmp_path / "a.txt"), *output]
    )
    arguments = ["pretrain", "--objective", "bilm", *output, "--resume"]
    assert "objective" in refused(cli.main, *arguments)


def test_a_warm_up_beyond_the_last_step_is_told(tmp_path, capsys):
    command = ["pretrain", "--objective", "mlm", "--text", str(tmp_path / "absent")]
    given = ["--output", str(tmp_path / "run"), "--set", "training.steps=500"]
    with pytest.raises(SystemExit):
        cli.main([*command, *given])
    assert "never has its full rate" in capsys.readouterr().err


def test_all_positions_are_trained_or_were(trained, tmp_path, capsys):
    (tmp_path / "a.txt").touch()
    sizes = "width=8 blocks=2 heads=2 feed_forward=12".split()
    own = [part for size in sizes for part in ("--set", f"model.{size}")]
    for name, setting in (
        ("long", "data.length=512"),
        ("public", f"model.pretrained={PUBLIC}"),
    ):
        command = ["pretrain", "--objective", "mlm", "--output", str(tmp_path / name)]
        text = ["--text", str(tmp_path / "a.txt")]
        cli.main([*command, *text, *own, "--set", setting])
        assert "positions from" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--text: give at least one file"),
        (["--text", "a", "--set", "model.heads=3"], "heads=3 does not divide width"),
        (
            ["--text", "a", "--set", "model.size=3"],
            "list of keys in docs/pretraining.md",
        ),
        (["--text", "a", "--set", "model.name=bidaf"], "model.name='bidaf'"),
        (
            ["--text", "a", "--set", "model.attention_over_attention=true"],
            "attention_over_attention is of a reader's head",
        ),
        (["--text", "a", "--set", "data.length=513"], "data.length=513"),
        (["--text", "a", "--set", "data.held_out=1"], "data.held_out=1"),
        (["--text", "a", "--set", "training.masked=0"], "training.masked=0"),
        (["--text", "a", "--set", "training.steps=4999999"], "more than 100,000,000"),
        (
            "--text=a --set=training.optimizer=adam "
            "--set=training.weight_decay=0.1".split(),
            "nothing without training.optimizer=adamw",
        ),
        (["--text", "a", "--set", "objective=bilm"], "objective='bilm'"),
        (["--resume"], "not the directory of a pre-training"),
        (["--resume", "--text", "a"], "does not go with --resume"),
        (["--resume", "--set", "a=1"], "does not go with --resume"),
        (["--text", "missing.txt"], "missing.txt: cannot be read"),
        (["--text", "a", "--set", "data.text=[b]"], "--set data.text: is what --text"),
        (
            f"--text={__file__} --set=data.pieces=200 --set=model.width=8 "
            f"--set=model.pretrained={PUBLIC}".split(),
            "data.pieces: changes nothing with model.pretrained",
        ),
        (
            ["--text", __file__, "--set", f"model.pretrained={PUBLIC}"],
            "give --set model.width=8 --set model.blocks=2",
        ),
        (
            ["--text", __file__, "--set", "model.pretrained=none"],
            "none: is no dir",
        ),
    ],
)
def test_mistakes_are_refused(refused, tmp_path, arguments, message):
    command = ["pretrain", "--objective", "mlm", "--output", tmp_path / "run"]
    assert message in refused(cli.main, *command, *arguments)
    assert not (tmp_path / "run").exists()


def test_nothing_is_overwritten(refused, trained, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("precious")
    command = ["pretrain", "--objective", "mlm", "--text", "a", "--output"]
    assert "already holds a run" in refused(cli.main, *command, tmp_path / "run")
    file = tmp_path / "run" / "config.json"
    assert "is a file" in refused(cli.main, *command, file)
    assert file.read_text() == "precious"


@pytest.mark.parametrize("arguments", [[], ["--objective", "gpt"]])
def test_the_objective_must_be_known(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        cli.main(["pretrain", *arguments, "--output", "x", "--text", "y"])
    assert caught.value.code == 2
    assert "--objective" in capsys.readouterr().err
