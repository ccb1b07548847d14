"""Tests of qanet.translation.apertium, with the real program where it is installed."""

import shutil
import subprocess
import sys
import time

import pytest

from qanet.errors import UserError
from qanet.translation.apertium import ApertiumTranslator, one_line

needs_apertium = pytest.mark.skipif(
    shutil.which("apertium") is None, reason="Apertium is not installed"
)


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    """Installs a program of the given Python code in Apertium's place."""

    def install(code):
        program = tmp_path / "apertium"
        program.write_text(f"#!{sys.executable}\nimport sys\n{code}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))

    return install


# Says what Apertium says to `-l`, then runs `text -> text` on the input.
LISTING = """
if sys.argv[1] == "-l":
    print("  eng-spa\\n  spa-eng")
    sys.exit()
text = sys.stdin.read()
"""


@needs_apertium
def test_translates_there_and_back():
    there = ApertiumTranslator("eng-spa").translate(["The house is red."], 5)
    assert there == [["La casa es roja."]]
    assert ApertiumTranslator("spa-eng").translate(there[0], 5) == [
        ["The house is red."]
    ]


@needs_apertium
def test_each_sentence_stands_alone():
    translator = ApertiumTranslator("eng-spa")
    sentences = [
        "He liked the",
        "red house\nand\t\tit",
        "",
        " ",
        "is [old] ^and$ {big} <b>\\n @ / * # + ~ $5",
        "\x00\x1b\u2028",
        "ends",
        "1.",
        ".",
        "Ünïcödé 中文 🙂",
    ]
    together = translator.translate(sentences, 1)
    assert together == [translator.translate([one], 1)[0] for one in sentences]
    assert [len(found) for found in together] == [1, 1, 0, 0, 1, 0, 1, 1, 1, 1]
    assert all("\n" not in text for found in together for text in found)


@needs_apertium
def test_a_pair_that_is_not_there():
    with pytest.raises(UserError, match=r"apertium:eng-xyz: .* there is .*eng-spa"):
        ApertiumTranslator("eng-xyz")


def test_without_apertium(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"not installed; .* apt-get install apertium"):
        ApertiumTranslator("eng-spa")


def test_a_lost_line_costs_no_other(pretend):
    # Where it sees more than one line it drops "lost"; alone it tears it in two.
    pretend(
        LISTING
        + """
lines = text.strip("\\n").split("\\n\\n")
kept = [line.upper() for line in lines if line != "lost"]
print("\\n\\n".join(kept or ["torn\\n\\nin two"]))
"""
    )
    translator = ApertiumTranslator("eng-spa")
    assert translator.translate(["a", "b", "lost", "c", ""], 5) == [
        ["A"],
        ["B"],
        ["torn in two"],
        ["C"],
        [],
    ]


def test_nothing_comes_back(pretend):
    pretend(LISTING)
    assert ApertiumTranslator("eng-spa").translate(["a", "b"], 1) == [[], []]


def test_a_failure_is_told_in_one_line(pretend):
    pretend(LISTING + 'sys.exit("broken pipe\\nand more")')
    with pytest.raises(UserError, match=r"code 1 \(broken pipe\)"):
        ApertiumTranslator("eng-spa").translate(["a"], 1)


def test_one_that_hangs_is_stopped_with_all_it_has_started(
    pretend, monkeypatch, tmp_path
):
    """What it has started holds its output open, which is read to the end."""
    begun, survived = tmp_path / "begun", tmp_path / "survived"
    pretend(
        f"""
import subprocess
from pathlib import Path

if sys.argv[1] != "-l":
    child = "import time; time.sleep(20); open({str(survived)!r}, 'w')"
    process = subprocess.Popen([sys.executable, "-c", child])
    Path({str(begun)!r}).touch()
    process.wait()
"""
        + LISTING
    )
    translator = ApertiumTranslator("eng-spa")
    communicate = subprocess.Popen.communicate

    def hang(process, *arguments):
        if not arguments:
            return communicate(process)
        # Unless it has failed.
        while not begun.exists() and process.poll() is None:
            time.sleep(0.01)
        raise subprocess.TimeoutExpired("apertium", 600)

    monkeypatch.setattr(subprocess.Popen, "communicate", hang)
    with pytest.raises(UserError, match="gave no answer in 600 seconds"):
        translator.translate(["a"], 1)
    assert not survived.exists()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("co\u00adoperate", "cooperate"),
        ("\ufeffin \u200eorder\u200bnow\u200b", "in order now"),
        # Of Persian and of emoji they are a part.
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("👩\u200d🚀", "👩\u200d🚀"),
    ],
)
def test_marks_of_format_part_no_words(text, line):
    assert one_line(text) == line


def test_one_line():
    assert one_line(" a\u2028b\x00\tc\u00a0\ud800d\n") == "a b c d"
