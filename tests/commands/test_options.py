"""Tests of qanet.commands.options: what all commands have in common."""

import argparse
import shlex
import tempfile
from pathlib import Path

import pytest

from qanet import cli
from qanet.commands.options import check_directory, check_file
from qanet.errors import UserError


def parsers(parser):
    """A parser and those of its commands and their commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from parsers(command)


PARSERS = list(parsers(cli.make_parser()))


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.prog)
def test_every_command_has_the_common_options(parser, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert "[--quiet | --verbose] [--version]" in " ".join(
        parser.format_usage().split()
    )


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.prog)
def test_examples_can_be_copied_from_the_help(parser, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    _, _, examples = parser.format_help().partition("\nexample")
    # A backslash goes on on the next line.
    lines = examples.replace("\\\n", "").splitlines()[1:]
    for line in lines:
        python, *command = shlex.split(line)
        assert python == "python"
        if command[:2] == ["-m", "qanet"]:
            command = command[2:]
        else:
            command[0] = command[0].removesuffix(".py")
        cli.make_parser().parse_args(command)
    assert bool(lines) == (parser.epilog is not None)


def test_scripts_are_called_by_their_names(capsys):
    for script, door in (("train.py", cli.train), ("evaluate.py", cli.evaluate)):
        with pytest.raises(SystemExit):
            door(["--help"])
        assert capsys.readouterr().out.startswith(f"usage: {script} ")


def test_a_directory_may_be_new_or_there(tmp_path):
    check_directory(tmp_path)
    check_directory(tmp_path / "new" / "newer")
    check_file(tmp_path / "new" / "file")
    (tmp_path / "file").touch()
    check_file(tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("below", ["file", "file/new", "file/new/newer", "link/new"])
def test_a_place_below_a_file_is_refused(tmp_path, below):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    what = "is a link to nothing" if below.startswith("link") else "is a file"
    with pytest.raises(UserError, match=f"{what}; give") as caught:
        check_directory(tmp_path / below)
    assert str(caught.value).startswith(f"--output {tmp_path / below}: ")
    with pytest.raises(UserError, match=f"{what}; give"):
        check_file(tmp_path / below / "output")


def test_a_place_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    # As root one may write anywhere, but on a file system that is read-only.
    def refuse(dir):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    expected = f"{tmp_path} cannot be written: Read-only file system; give another"
    with pytest.raises(UserError, match=expected):
        check_directory(tmp_path / "new")
    with pytest.raises(UserError, match=f"^--cache {tmp_path / 'x'}: {expected}"):
        check_file(tmp_path / "x", "--cache")


def test_a_link_to_itself_is_as_good_as_nothing(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    check_file(loop, others=[tmp_path / "other"])
    with pytest.raises(UserError, match=f"{loop}: is given for something else"):
        check_file(loop, others=[loop])


TRANSLATORS = ["--forward", "apertium:eng-spa", "--backward", "apertium:spa-eng"]


@pytest.mark.parametrize(
    "command",
    [
        ["answer", "--input", "x.jsonl"],
        ["augment", "--input", "x.json", *TRANSLATORS],
        ["cloze", "--input", "x.json"],
        ["filter", "--input", "x.json", "--model", "x"],
        ["pack", "--train", "x.json", "--dev", "x.json"],
        ["teach", "--train", "x.json", "--model", "x"],
    ],
    ids=lambda command: command[0],
)
def test_an_output_that_is_there_is_not_written_over(refused, tmp_path, command):
    path = tmp_path / "output"
    path.write_text("hours of work")
    line = refused(cli.main, *command, "--output", path)
    assert f"--output {path}: is there already; remove it or give another" in line
    assert path.read_text() == "hours of work"


def test_what_is_no_file_is_not_replaced(tmp_path):
    with pytest.raises(UserError, match=f"{tmp_path}: is a directory; give a file"):
        check_file(tmp_path)
    with pytest.raises(UserError, match="/dev/null: is no ordinary file"):
        check_file(Path("/dev/null"))
