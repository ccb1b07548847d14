"""Tests of benchmarks/enduring/commands.py: how a command may end."""

import sys
import warnings
from pathlib import Path

import pytest
from enduring import commands

from qanet import cli
from qanet.errors import UserError


@pytest.fixture
def complaint(monkeypatch):
    """What is said of a command that does something."""

    def run(act, **options):
        monkeypatch.setattr(cli, "main", lambda arguments: act())
        return commands.complaint(["answer"], **options)

    return run


def ending(code, written=""):
    """A command that writes an error and ends."""

    def act():
        print(written, end="", file=sys.stderr)
        sys.exit(code)

    return act


def test_commands_that_end_as_they_should(complaint):
    assert not complaint(lambda: print("0.5"))
    assert not complaint(ending(0))
    assert not complaint(ending(2, "warning: x\nerror: a: is wrong\n"))


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (ending(1), "exit code 1 of 'answer'"),
        (ending(2), "not one line of error"),
        (ending(2, "error: \n"), "not one line of error"),
        (ending(2, "error: a\nb: is wrong\n"), "not one line of error"),
        (ending(2, "error: a\nerror: b\n"), "not one line of error"),
        (ending(0, "Traceback (most recent call last):\n"), "a traceback of 'answer'"),
    ],
)
def test_other_ends_are_told(complaint, act, told):
    assert told in complaint(act)


def test_what_is_right_must_not_be_refused(complaint):
    act = ending(2, "error: a: is wrong\n")
    assert complaint(act, fine=True) == "refused of 'answer': error: a: is wrong"


def test_other_errors_are_raised(complaint):
    def fail():
        raise ValueError("of the code")

    with pytest.raises(ValueError, match="of the code"):
        complaint(fail)
    # A user would see a warning, and an error in place of what cannot be printed.
    with pytest.raises(RuntimeWarning):
        complaint(lambda: warnings.warn("overflow", RuntimeWarning, stacklevel=1))
    with pytest.raises(UnicodeEncodeError):
        complaint(lambda: print("\udcff", flush=True))


def test_what_takes_long_is_not_begun(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with commands.nothing_long():
        assert commands.ended(["train", "--output", "new"]) == (None, "")
        assert (
            commands.ended(["train", "--train", "squad", "--output", "new"])[0] is None
        )
    assert not (tmp_path / "new").exists()


def test_a_refusal_has_one_line():
    assert not commands.refusal(UserError("a: is wrong"))
    assert "not one line" in commands.refusal(UserError("a\nb: is wrong"))
    assert "not one line" in commands.refusal(UserError(""))


def test_each_input_has_a_new_directory(tmp_path):
    base, scratch = tmp_path / "base", tmp_path / "scratch"
    (base / "run").mkdir(parents=True)
    (base / "run" / "a").write_text("a")
    (base / "b").write_text("b")
    scratch.mkdir()
    before = Path.cwd()
    for _ in range(2):
        with commands.new_directory(base, scratch, "run", "b") as directory:
            assert {path.name for path in Path().iterdir()} == {"run", "b"}
            Path("run", "a").write_text("changed")
            Path("new").touch()
    assert Path.cwd() == before
    assert (base / "run" / "a").read_text() == "a"
    assert directory.parent == scratch
