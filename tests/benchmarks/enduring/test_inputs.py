"""Tests of benchmarks/enduring/inputs.py."""

from pathlib import Path

from enduring import inputs

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def test_there_are_ten_thousand():
    assert sum(count for _, count in inputs.TARGETS.values()) == 10_000


def test_the_row_of_a_target(monkeypatch):
    made, seen = [], []

    def try_inputs(name, target, base, seed, numbers):
        assert base.is_dir()
        seen.append((name, target, seed, numbers))
        return [f"{name}: lost"] if name == "b" else []

    monkeypatch.setattr(inputs, "_make_base", made.append)
    monkeypatch.setattr(inputs, "try_inputs", try_inputs)
    monkeypatch.setattr(inputs, "TARGETS", {"a": (min, 3), "b": (max, 2)})
    one, other = inputs.run(5)
    assert (one.what, one.tries, one.wrong) == ("a", 3, [])
    assert (other.what, other.tries, other.wrong) == ("b", 2, ["b: lost"])
    assert seen == [("a", min, 5, range(3)), ("b", max, 5, range(2))]
    assert len(made) == 1


def test_the_part_is_registered():
    text = (BENCHMARKS / "endurance.py").read_text("utf-8")
    assert '"inputs": inputs.run' in text
