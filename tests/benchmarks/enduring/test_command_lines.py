"""Tests of benchmarks/enduring/command_lines.py."""

from pathlib import Path
from random import Random

import pytest
from enduring import command_lines


@pytest.fixture(autouse=True)
def files(monkeypatch, tmp_path):
    """Files that are named."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in command_lines.FILES:
        Path(name).write_text("{}")


@pytest.fixture
def tried(tmp_path):
    """Tries some command lines and tells what is said of them."""

    def try_some(count):
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        with command_lines.command_lines(tmp_path, scratch) as attempt:
            return [attempt(Random(number)) for number in range(count)]

    return try_some


def test_all_commands_are_drawn():
    from qanet.cli import make_parser

    found = {" ".join(words) for words, _ in command_lines._leaves(make_parser())}
    assert found >= {"train", "evaluate", "answer", "serve", "pack", "settings"}
    assert found >= {"translate train", "translate run", "pretrain", "teach", "filter"}
    assert "translate" not in found


def test_command_lines_end_as_they_should(tried, tmp_path):
    before = {path.name for path in tmp_path.iterdir()}
    assert not any(tried(30))
    assert {path.name for path in tmp_path.iterdir()} == before | {"scratch"}


def test_a_command_that_fails_is_noticed(tried, monkeypatch):
    def fail(*arguments, **options):
        raise IndexError("of the code")

    monkeypatch.setattr("qanet.commands.options.load_preset", fail, raising=False)
    monkeypatch.setattr("qanet.config.load_preset", fail)
    with pytest.raises(IndexError, match="of the code"):
        tried(100)


@pytest.mark.parametrize(
    "word", ["/etc/new", "--output=/new", "../new", "a/../../b", "nmt:/new", "~/new"]
)
def test_places_elsewhere_are_not_named(word):
    assert command_lines._harmless(word) == "elsewhere"


@pytest.mark.parametrize("word", ["new/er", "/dev/null", "a.b", "training.steps=1"])
def test_other_words_stay(word):
    assert command_lines._harmless(word) == word
