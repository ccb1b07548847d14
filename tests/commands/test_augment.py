"""Tests of qanet.commands.augment."""

import re
import sys
from pathlib import Path

import pytest

from qanet import cli
from qanet.augmentation import augment as augment_module
from qanet.augmentation.paraphrase import Settings
from qanet.datasets.squad import read_squad


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
    Path(augmenting[-1]).unlink()
    cli.main([*augmenting, "--threshold", "0.5", "--seed", "7"])
    assert translators["please"].asked == asked


def test_options_tell_how_paraphrases_are_made(augmenting, translators, monkeypatch):
    used = []
    augment = augment_module.augment

    def noting(passages, forward, backward, settings, **options):
        used.append(settings)
        return augment(passages, forward, backward, settings, **options)

    monkeypatch.setattr(augment_module, "augment", noting)
    options = "--candidates 3 --seed 7 --matching bigrams --threshold 0.5"
    cli.main([*augmenting, *options.split()])
    assert used == [Settings(3, 7, "bigrams", 0.5)]


def test_outputs_that_differ_in_their_endings_have_reports_of_their_own(
    translators, augmenting
):
    directory = Path(augmenting[-1]).parent
    for name in ("train.es", "train.fr.json"):
        cli.main([*augmenting[:-1], str(directory / name)])
    reports = {path.name for path in directory.glob("*.report.md")}
    assert reports == {"train.es.report.md", "train.fr.report.md"}


@pytest.mark.parametrize("runner", [(), ("--runner", "NoRunner")])
def test_mistakes_are_told_before_a_translator_is_opened(
    refused, translators, augmenting, monkeypatch, runner
):
    if runner:
        message = "--runner NoRunner"
    else:
        message = "rapidfuzz"
        monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    # Cannot be called.
    monkeypatch.setattr("qanet.translation.translator.open_translator", None)
    assert message in refused(cli.main, *augmenting, *runner)
    augmenting[2] = "missing.json"
    assert "missing.json" in refused(cli.main, *augmenting, *runner)


def test_augment_tries_out_a_few_contexts(translators, augmenting):
    cli.main([*augmenting, "--contexts", "3"])
    contexts = {example.context for example in read_squad(augmenting[-1]).examples}
    assert len(contexts) == 3


def test_augment_refuses_mistakes(refused, augmenting, tmp_path):
    output = Path(augmenting[-1])
    assert "'please'" in refused(cli.main, *augmenting)
    line = refused(cli.main, *augmenting, "--", "--direct_num_workers=2")
    assert "--direct_num_workers=2: options of Apache Beam go with --runner" in line
    beam = ("--runner", "DirectRunner", "--cache", "x.sqlite")
    assert "--cache does not go with --runner" in refused(cli.main, *augmenting, *beam)
    line = refused(cli.main, *augmenting, "--runner", "Direct", "--cache", "x")
    assert "--cache does not go with --runner" in line
    assert not output.parent.exists()


@pytest.mark.parametrize(
    ("option", "place"),
    [
        ("--output", "file/new"),
        ("--output", "/proc/new"),
        ("--output", "/dev/null"),
        ("--output", "directory.json"),
        ("--cache", "file/new"),
        ("--cache", "/dev/null"),
    ],
)
def test_augment_that_could_not_be_written_is_not_begun(
    refused, translators, augmenting, tmp_path, option, place
):
    (tmp_path / "file").touch()
    (tmp_path / "directory.report.md").mkdir()
    line = refused(cli.main, *augmenting, option, tmp_path / place)
    assert f"{option} {(tmp_path / place).with_suffix('')}" in line
    assert not translators["please"].asked


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


@pytest.mark.parametrize("output", [".", "/"])
def test_an_output_without_a_name(refused, translators, augmenting, output):
    assert "is a directory" in refused(cli.main, *augmenting[:-1], output)
