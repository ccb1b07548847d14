"""Tests of benchmarks/impossible.py."""

import json

import pytest

from qanet.datasets.squad import Example, Span, read_squad, write_squad

ROME = "Zoë lives in Rome, the capital."
OSLO = "Bo came to Oslo by the sea."
SEA = "A capital by the sea is where Ida lives."
ALONE = "Nothing else is told."


def question(id, context, answer, title="Homes", text="Who lives in the capital?"):
    return Example(id, text, context, (Span(answer, context.index(answer)),), title)


EXAMPLES = [
    question("1", ROME, "Zoë"),
    question("2", OSLO, "Bo", text="Who came to the capital, in Rome?"),
    question("3", SEA, "lives"),
    question("4", ALONE, "told", title="Alone"),
]


@pytest.fixture
def make(door, tmp_path):
    def run(*options):
        path, output = tmp_path / "train.json", tmp_path / "out.json"
        write_squad(path, EXAMPLES)
        process = door(
            "benchmarks/impossible.py", "--input", path, "--output", output, *options
        )
        assert process.returncode == 0, process.stderr
        return read_squad(output).examples, json.loads(process.stdout)

    return run


def test_questions_are_asked_of_the_nearest_paragraph_without_the_answer(make):
    examples, counts = make("--share", "1")
    assert counts == {"answerable": 4, "impossible": 3}
    made = {e.id: e for e in examples if e.impossible}
    nearest = {id: e.context for id, e in made.items()}
    assert nearest == {
        "1-impossible": SEA,
        "2-impossible": ROME,
        # ROME is nearer, but it also says "lives".
        "3-impossible": OSLO,
    }
    for example in made.values():
        assert example.answers == ()
    assert [e for e in examples if not e.impossible] == sorted(
        EXAMPLES, key=lambda e: e.id
    )


def test_the_seed_fixes_which(make):
    once, counts = make("--share", "0.5", "--seed", "3")
    again, _ = make("--share", "0.5", "--seed", "3")
    assert once == again
    assert counts["answerable"] == 4
    assert counts["impossible"] == sum(e.impossible for e in once) < 3
