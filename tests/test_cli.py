"""Tests of qanet.cli: what each door accepts, prints and refuses."""

import contextlib
import json
import logging
import os
import re
import signal
import threading
from unittest import mock

import pytest

import qanet
from qanet import cli, console
from qanet.commands import pack
from qanet.datasets.squad import read_squad
from qanet.errors import UserError
from qanet.reader import Reader

QUESTION = "Where does Zoë live?"
CONTEXT = "Bo’ lives in Rome.\nZoë lives in São Paulo.\n"
# What it takes to compute with a model.
HEAVY = ("tensorflow", "keras", "jax", "torch", "tensorflow_datasets")


@pytest.mark.parametrize(
    "command",
    [
        ["train.py"],
        ["evaluate.py"],
        ["-m", "qanet"],
        ["-m", "qanet", "answer"],
        ["-m", "qanet", "serve"],
        ["-m", "qanet", "export"],
        ["-m", "qanet", "pack"],
        ["-m", "qanet", "teach"],
        ["-m", "qanet", "filter"],
        ["-m", "qanet", "augment"],
        ["-m", "qanet", "translate"],
        ["-m", "qanet", "translate", "train"],
        ["-m", "qanet", "translate", "run"],
        ["-m", "qanet", "pretrain"],
    ],
    ids=" ".join,
)
def test_help_waits_for_nothing_heavy(door, command):
    process = door(*command, "--help", blocked=(*HEAVY, "numpy"))
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("usage: ")
    assert process.stderr == ""


def test_help_is_ascii(capsys):
    # Where the terminal's encoding is, the parser could print nothing else.
    commands = ["train", "evaluate", "answer", "serve", "export", "pack", "augment"]
    commands += ["filter", "cloze", "teach", "translate", "pretrain", "settings"]
    for command in [*commands, "translate train", "translate run"]:
        with pytest.raises(SystemExit):
            cli.main([*command.split(), "--help"])
        assert capsys.readouterr().out.isascii()


def test_a_working_directory_that_was_removed(refused, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    line = refused(cli.main, "cloze", "--input", "sample", "--output", "cloze.json")
    assert line == "error: the working directory was removed; change to another"


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (cli.train, ["--no-such-option"]),
        (cli.evaluate, ["--model", "run"]),
        (cli.evaluate, ["--model", "a", "--predictions", "b", "--data", "c"]),
        (cli.main, []),
        (cli.main, ["no-such-command"]),
        (cli.main, ["teach", "--train", "sample", "--output", "teacher.npz"]),
        (cli.main, ["filter", "--input", "train.json", "--output", "kept.json"]),
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
    ],
)
def test_wrong_usage_ends_with_code_2(command, arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        command(arguments)
    assert caught.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"error: .*; see (python -m qanet|\w+\.py).* --help", line)


def test_ctrl_c_ends_without_a_traceback(monkeypatch, capsys, trained, tmp_path):
    def interrupted(run):
        raise KeyboardInterrupt

    monkeypatch.setattr(Reader, "load", interrupted)
    path = tmp_path / "context.txt"
    path.write_text("A passage.")
    arguments = ["answer", "--model", str(trained.directory), "--question", "who?"]
    with pytest.raises(SystemExit) as caught:
        cli.main([*arguments, "--context-file", str(path)])
    assert caught.value.code == 130
    assert capsys.readouterr().err == "stopped\n"


@pytest.fixture
def terminated(monkeypatch):
    """Runs a command that is sent SIGTERM; gives the signal's handlers before it."""
    monkeypatch.setattr(
        pack, "_run", lambda _: signal.raise_signal(signal.SIGTERM) or None
    )
    before = signal.getsignal(signal.SIGTERM)

    def run(handler):
        signal.signal(signal.SIGTERM, handler)
        cli.main(["pack", "--output", "x.npz"])

    yield run
    signal.signal(signal.SIGTERM, before)


def test_sigterm_ends_without_a_traceback(terminated, capsys):
    with pytest.raises(SystemExit) as caught:
        terminated(signal.SIG_DFL)
    assert caught.value.code == 143
    assert capsys.readouterr().err == "stopped\n"
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("error", [UserError("broken"), ImportError("broken"), None])
def test_a_stop_that_a_library_swallows_is_one(monkeypatch, capsys, number, error):
    # As the import of ONNX Runtime does.
    def swallow(options):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(number)
        if error:
            raise error

    monkeypatch.setattr(pack, "_run", swallow)
    usual = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
    }
    # A shell lets what it runs in the background ignore Ctrl-C.
    former = {n: signal.signal(n, handler) for n, handler in usual.items()}
    try:
        with pytest.raises(SystemExit) as caught:
            cli.main(["pack", "--output", "x.npz"])
        assert {n: signal.getsignal(n) for n in usual} == usual
    finally:
        for n, handler in former.items():
            signal.signal(n, handler)
    assert caught.value.code == 128 + number
    assert capsys.readouterr().err == "stopped\n"


def test_sigterm_of_others_stays_theirs(terminated):
    terminated(signal.SIG_IGN)
    seen = []
    terminated(lambda *_: seen.append("theirs"))
    assert seen == ["theirs"]


def test_parts_of_a_step_are_compiled_at_once(monkeypatch):
    """What the user tells XLA stays."""
    monkeypatch.setattr(pack, "_run", lambda _: None)
    for given, expected in (
        ("--x=1", "--x=1 --tf_xla_enable_lazy_compilation=false"),
        (
            "--tf_xla_enable_lazy_compilation=true",
            "--tf_xla_enable_lazy_compilation=true",
        ),
    ):
        monkeypatch.setenv("TF_XLA_FLAGS", given)
        cli.main(["pack", "--output", "x.npz"])
        assert os.environ["TF_XLA_FLAGS"] == expected


def test_commands_run_in_any_thread(monkeypatch):
    seen = []
    monkeypatch.setattr(pack, "_run", lambda _: seen.append("run"))
    thread = threading.Thread(target=cli.main, args=[["pack", "--output", "x.npz"]])
    thread.start()
    thread.join()
    assert seen == ["run"]


@pytest.mark.parametrize("door", [cli.main, cli.train, cli.evaluate])
def test_version(door, capsys):
    with pytest.raises(SystemExit) as caught:
        door(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"qanet {qanet.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "level"),
    [
        (["pack"], logging.INFO),
        (["pack", "--quiet"], logging.WARNING),
        (["pack", "--verbose"], logging.DEBUG),
        # What stands before the command holds for it too.
        (["--quiet", "pack"], logging.WARNING),
        (["--verbose", "pack"], logging.DEBUG),
    ],
)
def test_what_is_printed_is_chosen_in_front_and_behind(
    monkeypatch, tmp_path, arguments, level
):
    levels = []
    monkeypatch.setattr(pack, "_run", lambda _: levels.append(console.log.level))
    cli.main([*arguments, "--output", str(tmp_path / "x.npz")])
    assert levels == [level]


def test_verbose_tells_where_a_mistake_arose(tmp_path, capsys):
    arguments = ["--model", str(tmp_path), "--data", "sample"]
    for option, lines in (([], 1), (["--quiet"], 1), (["--verbose"], None)):
        with pytest.raises(SystemExit) as caught:
            cli.evaluate([*arguments, *option])
        assert caught.value.code == 2
        said = capsys.readouterr().err.splitlines()
        assert said[-1].startswith(f"error: {tmp_path}: not a run directory")
        assert len(said) == lines if lines else said[0].startswith("Traceback")


# Each is to be refused.
MISTAKES = """
import shlex, sys
from qanet import cli
for line in sys.stdin.read().splitlines():
    door, *arguments = shlex.split(line)
    try:
        getattr(cli, door)(arguments)
    except SystemExit as exit:
        print(exit.code)
"""


def test_mistakes_are_told_before_anything_heavy_is_imported(door, trained, tmp_path):
    script = tmp_path / "mistakes.py"
    script.write_text(MISTAKES)
    text, absent, run = tmp_path / "text", tmp_path / "absent", trained.directory
    text.write_text("A passage.")
    asked = f"--question Who? --context-file {text}"
    mistakes = {
        "train --preset huge": "unknown preset 'huge'",
        "train --set training.colour=red": "unknown key training.colour",
        f"train --train {absent}": "absent: give --dev too",
        f"train --train {absent} --dev sample": "absent: cannot be read",
        f"train --vectors {absent}": "absent: cannot be read",
        f"train --packed {absent}": "absent: cannot be read",
        f"train --output {text}": "text: is a file",
        f"train --resume --output {absent}": "absent: not a run directory",
        f"evaluate --model {absent} --data sample": "absent: not a run directory",
        f"evaluate --model {run} --data {absent}": "absent: cannot be read",
        f"evaluate --model {run} --data sample --output {text}": "text: is a file",
        f"main answer --model {absent} {asked}": "absent: not a run directory",
        f"main answer --model {run} --question Q --context-file {absent}": "absent",
        f"main export --model {absent} --output {absent}": "not a run directory",
        f"main export --model {run} --output {text}/1": "text is a file",
        f"main serve --port 0 --model {absent}": "absent: not a run directory",
        f"main pack --dev {absent} --output {absent}.npz": "absent: cannot be read",
        f"main translate train --data {absent} --output {tmp_path / 'n'}": "absent",
        f"main pretrain --objective mlm --text {absent} --output {tmp_path / 'n'}": (
            "absent: cannot be read"
        ),
        f"main translate run --translator nmt:{absent}": "absent: not the directory",
    }
    process = door(script, blocked=HEAVY, input="\n".join(mistakes))
    assert process.returncode == 0, process.stderr
    assert process.stdout.split() == ["2"] * len(mistakes)
    said = process.stderr.splitlines()
    for expected, line in zip(mistakes.values(), said, strict=True):
        assert line.startswith("error: ")
        assert expected in line


def test_an_unknown_backend_is_told_in_one_line(door, trained, tmp_path):
    path = tmp_path / "context.txt"
    path.write_text("A passage.")
    arguments = ["--model", trained.directory, "--question", "Who?"]
    process = door(
        *("-m", "qanet", "answer", *arguments, "--context-file", path), backend="foo"
    )
    assert process.returncode == 2
    (line,) = process.stderr.splitlines()
    assert line.startswith("error: KERAS_BACKEND=foo: Keras cannot be imported")


def test_a_mistake_prints_one_line_in_a_real_process(door, tmp_path):
    path = tmp_path / "dev.json"
    path.write_text('{"data": [{"title": "Kraków", "paragraphs": 3}]}', "utf-8")
    process = door("evaluate.py", "--predictions", path, "--data", path)
    assert process.returncode == 2
    assert process.stdout == ""
    (line,) = process.stderr.splitlines()
    assert line.startswith("error: ")


def test_trains_and_evaluates_on_jax_where_tensorflow_cannot_be_imported(
    door, tiny_arguments, tiny_files, tmp_path
):
    run = tmp_path / "run"
    packed = tmp_path / "data.npz"
    jax = {"backend": "jax", "blocked": ["tensorflow"]}
    arguments = ["--preset", "qanet-tiny", *tiny_arguments, "--output", packed]
    process = door("-m", "qanet", "pack", *arguments)
    assert process.returncode == 0, process.stderr
    assert "train: 25 questions, " in process.stdout
    assert f"{packed}: " in process.stdout
    # Without the two files, and what the packed data set settles.
    settings = [part for part in tiny_arguments[5::2] if "vocabulary." not in part]
    settings = [part for setting in settings for part in ("--set", setting)]
    process = door("train.py", "--packed", packed, *settings, "--output", run, **jax)
    assert process.returncode == 0, process.stderr
    assert len((run / "history.csv").read_text().splitlines()) == 1 + 3
    assert len(list((run / "checkpoints").iterdir())) == 2

    process = door("evaluate.py", "--model", run, "--data", tiny_files.dev, **jax)
    assert process.returncode == 0, process.stderr
    metrics = json.loads((run / "metrics.json").read_text())
    assert json.loads(process.stdout.splitlines()[-1]) == metrics
    assert metrics["total"] == 10
    assert sorted(path.name for path in (run / "evaluation" / "dev").iterdir()) == [
        "metrics.json",
        "nbest.json",
        "predictions.json",
    ]
    # What JAX has trained, TensorFlow reads.
    read = Reader.load(run)
    example = read_squad(tiny_files.dev).examples[0]
    predictions = json.loads(
        (run / "evaluation" / "dev" / "predictions.json").read_text()
    )
    assert (
        read.answer(example.question, example.context).text == (predictions[example.id])
    )


@pytest.mark.parametrize("options", [[], ["--verbose"]])
def test_a_mistake_is_no_result(monkeypatch, capsys, options):
    """Nor where standard error is closed, in whose place `print` takes the other."""
    monkeypatch.setattr("sys.stderr", None)
    asked = ["answer", "--question", "Who?", "--context-file", "absent"]
    with pytest.raises(SystemExit) as caught:
        cli.main([*asked, *options])
    assert caught.value.code == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("kind", ["Python", "TensorFlow", "JAX"])
def test_too_little_memory_is_told_in_a_line(refused, monkeypatch, kind):
    if kind == "Python":
        error = MemoryError()
    elif kind == "TensorFlow":
        import tensorflow as tf

        error = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")
    else:
        error = RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 7 bytes")
    monkeypatch.setattr(
        "qanet.commands.answer._read_text", mock.Mock(side_effect=error)
    )
    asked = ["answer", "--question", "Who?", "--context-file", "x"]
    assert "out of memory" in refused(cli.main, *asked)


def test_a_name_that_is_too_long_is_a_mistake(refused):
    line = refused(cli.main, "evaluate", "--model", "a" * 5000, "--data", "sample")
    assert "File name too long" in line


def test_a_name_of_several_lines_is_told_on_one(refused, tmp_path):
    name = tmp_path / "a\nb\u2028c"
    line = refused(cli.main, "evaluate", "--data", "sample", "--predictions", name)
    assert f"{tmp_path}/a b c: cannot be read" in line


def test_an_error_of_no_file_is_no_mistake(monkeypatch):
    def fail(options):
        raise OSError("of something else")

    monkeypatch.setattr("qanet.commands.settings.tables", lambda: fail(None))
    with pytest.raises(OSError, match="of something else"):
        cli.main(["settings"])
