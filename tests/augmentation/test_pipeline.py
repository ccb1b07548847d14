"""Tests of qanet.augmentation.pipeline, against `augment` in this process."""

import importlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from apache_beam.runners.portability.prism_runner import PrismRunner

from qanet import cli
from qanet.augmentation import pipeline
from qanet.augmentation.augment import augment
from qanet.augmentation.paraphrase import Settings, passages
from qanet.augmentation.pipeline import augment_with_beam
from qanet.datasets.squad import Example, Span, write_squad
from qanet.errors import UserError
from qanet.translation.apertium import ApertiumTranslator

SPECIFICATIONS = ("apertium:eng-spa", "apertium:spa-eng")
PROCESSES = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")

# Exchanges words and writes down every sentence that it is given, and who gave it.
PROGRAM = r"""
import os, sys
mode = sys.argv[-1]
if mode == "-l":
    print("eng-spa\nspa-eng")
    sys.exit()
sentences = sys.stdin.buffer.read().decode().strip("\n").split("\n\n")
with open(f"{__file__}.{mode}", "a", encoding="utf-8") as file:
    file.writelines(f"{os.getppid()} {sentence}\n" for sentence in sentences)
words = {
    "eng-spa": {"big": "gros", "house.": "maison."},
    "spa-eng": {"gros": "large", "maison.": "houses."},
}[mode]
told = [
    " ".join(words.get(word, word) for word in sentence.split())
    for sentence in sentences
]
sys.stdout.buffer.write("\n\n".join(told).encode())
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a program in Apertium's place, also for other processes."""

    def write(code):
        program = tmp_path / "bin" / "apertium"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!{sys.executable}\n{code}")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
        return program

    return write


@pytest.fixture(scope="module")
def examples():
    """Three questions on each of 20 contexts, which share a sentence."""
    made = []
    for i in range(20):
        context = (
            f"Zoë {i} has a{' very' * i} big red house. It is red.\nBo has {i} cats."
        )
        for answer in ("big", "red house", f"{i} cats"):
            answers = (Span(answer, context.index(answer)),)
            made.append(Example(f"{i} {answer}", "What?", context, answers))
    return made


def same(result, other):
    return replace(result, sentences_per_second=0.0) == replace(
        other, sentences_per_second=0.0
    )


@pytest.mark.parametrize("options", [(), PROCESSES], ids=["one", "two processes"])
def test_the_result_is_that_without_a_pipeline(install, examples, options):
    program = install(PROGRAM)
    read = passages(examples)
    result = augment_with_beam(
        read, *SPECIFICATIONS, Settings(), "DirectRunner", options
    )
    sentences = {sentence for passage in read for sentence in passage.sentences}
    for way, asked in (
        ("eng-spa", sentences),
        (
            "spa-eng",
            {s.replace("big red house.", "gros red maison.") for s in sentences},
        ),
    ):
        lines = Path(f"{program}.{way}").read_text(encoding="utf-8").splitlines()
        asking, given = zip(*(line.split(" ", 1) for line in lines), strict=True)
        assert Counter(given) == Counter(asked)  # Each of them once.
        if options:
            assert len({*asking, str(os.getpid())}) == 3
        else:
            assert {*asking} == {str(os.getpid())}
    expected = augment(read, *map(_apertium, SPECIFICATIONS), Settings())
    assert same(result, expected)
    assert result.counts["answers_exact"] == 20
    assert result.counts["answers_close"] == result.counts["answers_dropped"] == 20
    assert [example.context for example in result.examples][:2] == [
        "Zoë 0 has a large red houses. It is red.\nBo has 0 cats."
    ] * 2


def _apertium(specification):
    return ApertiumTranslator(specification.partition(":")[2])


class Commas:
    """Knows as many translations as are wanted, but none of some sentences."""

    batch_size = 3

    def __init__(self, name):
        self.name = name
        self.batches = []

    def translate(self, sentences, count):
        self.batches.append(list(sentences))
        return [
            [sentence + "," * i for i in range(count)] if "7" not in sentence else []
            for sentence in sentences
        ]


@pytest.fixture
def translators(monkeypatch):
    """Those that the specifications `there` and `back` stand for in this process."""
    named = {name: Commas(name) for name in ("there", "back")}
    monkeypatch.setattr(pipeline, "open_translator", named.__getitem__)
    return named


@pytest.mark.parametrize("seed", [1, 2])
def test_candidates_are_drawn_as_without_a_pipeline(translators, examples, seed):
    settings = Settings(candidates=4, seed=seed)
    read = passages(examples)
    result = augment_with_beam(read, "there", "back", settings, "DirectRunner")
    assert same(result, augment(read, Commas("there"), Commas("back"), settings))
    # "Zoë 7", "7 cats" and their like in 17.
    assert result.counts["sentences_kept_empty"] == 4


def test_batches_are_as_large_as_suits_the_translator(translators, examples):
    read = passages(examples)
    augment_with_beam(read, "there", "back", Settings(), "DirectRunner")
    for translator in translators.values():
        lengths = [len(batch) for batch in translator.batches]
        assert max(lengths) == 3
        assert sum(lengths) >= 41 - 4


def test_no_other_runner_takes_the_place_of_the_direct_one(
    translators, examples, monkeypatch
):
    # Beam's DirectRunner would else download and start a program first.
    tried = []
    monkeypatch.setattr(PrismRunner, "run_pipeline", lambda *_: tried.append(1))
    read = passages(examples[:1])
    augment_with_beam(read, "there", "back", Settings(), "DirectRunner")
    assert tried == []


def test_files_of_the_pipeline_are_removed(translators, examples, tmp_path):
    def run():
        options = [f"--temp_location={tmp_path / 'new'}"]
        read = passages(examples[:1])
        augment_with_beam(read, "there", "back", Settings(), "direct", options)

    run()
    assert list((tmp_path / "new").iterdir()) == []
    translators["back"].translate = None  # Cannot be called.
    with pytest.raises(TypeError):
        run()
    assert list((tmp_path / "new").iterdir()) == []


# Mistakes.


def test_a_translator_that_is_missing_is_noticed_here(install, examples, monkeypatch):
    install(PROGRAM)
    monkeypatch.setattr(pipeline, "_to_its_end", None)  # Cannot be called.
    read = passages(examples)
    with pytest.raises(UserError, match="apertium:eng-xyz: this language pair is not"):
        augment_with_beam(
            read, SPECIFICATIONS[0], "apertium:eng-xyz", Settings(), "DirectRunner"
        )


def test_a_translator_that_is_missing_on_a_worker(examples, monkeypatch):
    opened = []

    def open_translator(specification):
        opened.append(specification)
        if len(opened) > 2:
            raise UserError(f"{specification} is not here")
        return Commas(specification)

    monkeypatch.setattr(pipeline, "open_translator", open_translator)
    with pytest.raises(UserError, match=r"^there is not here$"):
        augment_with_beam(
            passages(examples), "there", "back", Settings(), "DirectRunner"
        )


@pytest.mark.parametrize(
    ("runner", "options", "message"),
    [
        ("NoRunner", [], "--runner NoRunner: .* Valid values are .*DirectRunner"),
        ("no.Runner", [], "--runner no.Runner: No module named 'no'"),
        ("DirectRunner", ["--direct_num_workers=x"], "--direct_num_workers: .*'x'"),
        ("DirectRunner", ["--direct_running_mode=multi_threading"], "multi_processing"),
        ("FlinkRunner", [], "add -- --temp_location=DIR"),
        ("DirectRunner", ["--temp_location={file}/x"], "file/x: cannot be used"),
        ("DirectRunner", ["--temp_location={file}[1]"], "without \\*, \\? and \\["),
        ("DirectRunner", ["--temp_location=gs://a/b"], "gs://a/b: cannot be used"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    translators, examples, tmp_path, capsys, runner, options, message
):
    file = tmp_path / "file"
    file.write_text("")
    options = [option.format(file=file) for option in options]
    read = passages(examples)
    with pytest.raises(UserError, match=message) as caught:
        augment_with_beam(read, "there", "back", Settings(), runner, options)
    assert "\n" not in str(caught.value)
    assert capsys.readouterr().err == ""


def test_without_beam(monkeypatch):
    monkeypatch.delitem(sys.modules, "qanet.augmentation.pipeline")
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(UserError, match=r"pip install 'qanet\[beam\]'"):
        importlib.import_module("qanet.augmentation.pipeline")
    assert logging.getLogger().isEnabledFor(logging.WARNING)


# The command line.


@pytest.fixture
def arguments(examples, tmp_path):
    path = tmp_path / "input.json"
    write_squad(path, examples)
    forward, backward = SPECIFICATIONS
    return [
        *("augment", "--input", str(path), "--forward", forward),
        *("--backward", backward, "--output"),
    ]


def test_the_command_writes_the_same_bytes(install, arguments, tmp_path):
    install(PROGRAM)
    alone, beam = tmp_path / "alone", tmp_path / "beam"
    cli.main([*arguments, str(alone / "x.json")])
    options = ["--", f"--temp_location={tmp_path / 'new'}"]
    cli.main([*arguments, str(beam / "x.json"), "--runner", "DirectRunner", *options])
    assert (tmp_path / "new").is_dir()
    names = ["x.json", "x.report.md"]
    assert sorted(path.name for path in beam.iterdir()) == names
    for name in names:
        assert (beam / name).read_bytes() == (alone / name).read_bytes()


def test_the_command_says_in_one_line_what_a_worker_lacks(
    install, arguments, tmp_path, capfd
):
    install(PROGRAM.replace('"spa-eng": {', '"not-this": {'))
    output = tmp_path / "new" / "x.json"
    with pytest.raises(SystemExit) as caught:
        cli.main([*arguments, str(output), "--runner", "DirectRunner"])
    assert caught.value.code == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("error: apertium: ended with code 1 (")
    assert not output.parent.exists()


@pytest.fixture
def interruptible():
    """A shell starts what runs in its background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux")
@pytest.mark.parametrize("starting", [False, True], ids=["running", "starting"])
def test_processes_end_with_the_work_that_is_stopped(
    monkeypatch, interruptible, starting
):
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    started, stopped = [], threading.Event()
    if starting:
        # A busy processor comes back to who started a thread long after that.
        start = threading.Thread.start
        monkeypatch.setattr(
            threading.Thread, "start", lambda thread: (start(thread), stopped.wait())
        )

    def work():
        # The shell stays, and has a child.
        shell = ["sh", "-c", "sleep 60 & echo $!; wait"]
        started.append(subprocess.Popen(shell, stdout=subprocess.PIPE, text=True))
        started[0].stdout.readline()
        os.kill(os.getpid(), signal.SIGINT)
        stopped.set()
        started[0].wait()

    with pytest.raises(KeyboardInterrupt):
        pipeline._to_its_end(work)
    with started[0] as shell:
        assert shell.wait(30) == -signal.SIGKILL
        # Its child holds the other end no more.
        assert shell.stdout.read() == ""


def test_failures_of_the_work_are_told():
    def fail():
        raise UserError("it")

    with pytest.raises(UserError, match="it"):
        pipeline._to_its_end(fail)
