"""Tests of benchmarks/enduring/watching.py: no fault of an input is overlooked."""

from pathlib import Path
from random import Random

import pytest
from enduring import watching

# What tries inputs, in a module that another process finds.
FAULTY = """
import contextlib, os, signal, threading
from random import Random

DRAWN = {Random(f"faulty 7 {number}").random(): number for number in range(9)}

@contextlib.contextmanager
def faulty(base, scratch):
    def attempt(random):
        number = DRAWN[random.random()]
        (base / str(number)).touch()
        (scratch / str(number)).touch()
        if number == 1:
            raise ValueError("of two\\nlines")
        if number == 2:
            threading.Event().wait()
        if number == 3:
            os.write(2, b"what a library says\\n")
            os.abort()
        if number == 4:
            return "status 500"
    yield attempt

@contextlib.contextmanager
def never(base, scratch):
    raise OSError("nothing is there")
    yield
"""


@pytest.fixture
def faulty(monkeypatch, tmp_path):
    """A module of what tries inputs."""
    (tmp_path / "faulty_target.py").write_text(FAULTY)
    monkeypatch.syspath_prepend(tmp_path)
    import faulty_target

    return faulty_target


def test_errors_hangs_and_deaths_are_told_and_the_others_go_on(faulty, tmp_path, capfd):
    base = tmp_path / "base"
    base.mkdir()
    wrong = watching.try_inputs("faulty", faulty.faulty, base, 7, range(6), limit=3.0)
    error, hang, death, status = wrong
    assert error.startswith("faulty, seed 7, input 1: ValueError: of two lines (")
    assert hang == "faulty, seed 7, input 2: no end within 3 seconds"
    assert death == (
        "faulty, seed 7, input 3: the process died, exit code -6: what a library says"
    )
    assert status == "faulty, seed 7, input 4: status 500"
    assert {path.name for path in base.iterdir()} == set("012345")


def test_what_cannot_begin_is_no_input(faulty, tmp_path):
    with pytest.raises(
        RuntimeError, match=r"never cannot be made ready: .* exit code 1"
    ):
        watching.try_inputs("never", faulty.never, tmp_path, 7, range(3))


def test_one_input_again(faulty, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(watching.tempfile, "tempdir", str(tmp_path))
    base = tmp_path / "base"
    base.mkdir()
    watching.try_one("faulty", faulty.faulty, base, 7, 4)
    first, second = capsys.readouterr().out.splitlines()
    assert second == "status 500"
    assert (Path(first.removeprefix("written to ")) / "4").exists()
    with pytest.raises(ValueError, match="of two"):
        watching.try_one("faulty", faulty.faulty, base, 7, 1)


def test_equal_seeds_draw_equal_inputs():
    draws = {
        watching.drawn(name, seed, number).random()
        for name in ("a", "b")
        for seed in (0, 1)
        for number in (0, 1)
    }
    assert len(draws) == 8
    assert watching.drawn("a", 0, 1).random() == Random("a 0 1").random()
