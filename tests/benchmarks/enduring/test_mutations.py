"""Tests of benchmarks/enduring/mutations.py and of the grammars beside it."""

import json
from random import Random

from enduring import grammars, mutations

from qanet.datasets.squad import parse_squad, read_squad
from qanet.question_file import read_rows
from qanet.text.vectors import read_vectors

DOCUMENT = {"a": [1, {"b": "text"}], "c": {"d": None, "e": 2.5}}
COUNT = 400


def test_equal_seeds_do_equal_damage():
    data = json.dumps(DOCUMENT).encode()
    made = [mutations.damaged(data, Random(i), b"other") for i in range(COUNT)]
    assert made == [mutations.damaged(data, Random(i), b"other") for i in range(COUNT)]
    assert len(set(made)) > COUNT / 2


def test_bytes_become_fewer_more_and_others():
    data = bytes(range(100))
    made = [mutations.of_bytes(data, Random(i), b"OTHER") for i in range(COUNT)]
    assert any(len(one) < len(data) for one in made)
    assert any(len(one) > len(data) for one in made)
    assert any(len(one) == len(data) and one != data for one in made)
    assert any(data.startswith(one) for one in made)
    assert any(one.endswith(b"OTHER") for one in made)
    assert mutations.of_bytes(b"", Random(0)) is not None


def test_values_become_others_of_all_kinds():
    made = [mutations.of_json(DOCUMENT, Random(i)) for i in range(COUNT)]
    assert b"@" not in b"".join(made)
    readable = []
    for one in made:
        try:
            readable.append(json.loads(one))
        except (ValueError, RecursionError):
            continue
    # Most of the damage is not to the form.
    assert len(readable) > COUNT / 2
    assert any(type(one) is not dict for one in readable)
    assert any(type(one) is dict and "a" not in one for one in readable)
    assert any(type(one) is dict and type(one.get("a")) is str for one in readable)
    assert any(one.count(b'"c"') == 2 for one in made)
    assert any(b"[" * 1000 in one for one in made)
    assert any(b"NaN" in one for one in made)
    assert DOCUMENT == {"a": [1, {"b": "text"}], "c": {"d": None, "e": 2.5}}


def test_lines_become_longer_shorter_and_others():
    data = b"a 1 2\nb 3 4\nc 5 6\n"
    made = [mutations.of_lines(data, Random(i)) for i in range(COUNT)]
    assert any(one.count(b"\r\n") == 3 for one in made)
    assert any(one.startswith(b"\xef\xbb\xbf") for one in made)
    assert any(not one.endswith(b"\n") for one in made)
    assert any(b"\0" in one for one in made)
    assert any(one.count(b"\n") > 3 for one in made)
    assert mutations.of_lines(b"", Random(0)) is not None


def test_what_is_odd_but_right_is_accepted(tmp_path):
    path = tmp_path / "data.json"
    for seed in range(100):
        random = Random(seed)
        document = grammars.data_file(random)
        path.write_bytes(grammars.as_json(document, random))
        read = read_squad(path)
        assert [example.id for example in read.examples] == grammars.ids(document)
        assert parse_squad(document, "document") == read
        lines = grammars.questions(random).splitlines()
        assert not [row for row in read_rows(lines) if row.error]


def test_vectors_are_accepted(tmp_path):
    path = tmp_path / "vectors.txt"
    words = ["Rome", "lives", "in"]
    for seed in range(100):
        path.write_bytes(grammars.vectors(Random(seed), words))
        read = read_vectors(path, words, 100)
        assert len(read.words) == 5
