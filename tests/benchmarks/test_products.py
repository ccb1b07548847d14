"""Tests of benchmarks/products.py."""

import json

import products
import pytest


@pytest.mark.parametrize("library", ["tensorflow-xla", "tensorflow", "jax"])
def test_rates_of_both_types_are_printed_and_stored(
    library, monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr(products, "SHAPES", ((128, 96, 64),))
    output = tmp_path / "products.json"
    arguments = ["products.py", "--libraries", library, "--output", str(output)]
    monkeypatch.setattr("sys.argv", arguments)
    products.main()
    rows = json.loads(output.read_text())["rows"]
    assert [row["dtype"] for row in rows] == ["float32", "bfloat16"]
    assert all(row["library"] == library and row["128x96x64"] > 0 for row in rows)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_rate_is_that_of_the_median_group(monkeypatch):
    # Groups that begin and end at these seconds: 12 of 1 s each, one after the other.
    clock = iter(range(100))
    monkeypatch.setattr(products.time, "perf_counter", lambda: next(clock))
    calls = []
    assert products.rate(lambda: calls.append(1), operations=2 * 10**9) == 10.0
    assert len(calls) == 1 + products.GROUPS * products.PRODUCTS
