"""Tests of benchmarks/data.py."""

import json


def test_times_both_starts_and_the_pipeline(door, tiny_files, tmp_path):
    vectors, output = tmp_path / "vectors.txt", tmp_path / "data.json"
    vectors.write_text("lives 0.5 1\nin 1 2\n", encoding="utf-8")
    arguments = ["--train", tiny_files.train, "--dev", tiny_files.dev]
    arguments += ["--vectors", vectors, "--output", output]

    process = door(
        "benchmarks/data.py", "--preset", "qanet-tiny", "--steps", 5, *arguments
    )

    assert process.returncode == 0, process.stderr
    told = json.loads(output.read_text())
    for start in ("first start", "second start"):
        assert told[start]["questions"] == 25 + 10
        assert told[start]["peak_mib"] >= told[start]["of_which_imports_mib"] > 0
    assert told["input pipeline"]["steps"] == 5
    assert told["input pipeline"]["examples_per_second"] > 0
