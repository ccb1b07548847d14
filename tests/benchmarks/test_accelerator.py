"""Tests of benchmarks/accelerator.py."""

import argparse
import json
import os
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops
from machine import versions

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "accelerator.py"
TINY = """
    data.question_limit=4 model.width=8 model.heads=2 model.feed_forward=8
    model.embedding_encoder.blocks=1 model.embedding_encoder.convolutions=1
    model.model_encoder.blocks=1 model.model_encoder.convolutions=0
    model.character_width=4 model.character_filters=0 model.highway_layers=0
""".split()


@pytest.fixture
def script():
    """What `accelerator.py` and `recurrent.py` define."""
    names = runpy.run_path(str(SCRIPT))
    return SimpleNamespace(**(vars(sys.modules["recurrent"]) | names))


def table(process):
    """The first words of the lines below the titles."""
    _, _, *lines = process.stdout.splitlines()
    return [line.split()[:2] for line in lines]


def test_measures_on_jax_where_tensorflow_cannot_be_imported(
    door, tmp_path, monkeypatch
):
    # On one device.
    flags = [flag for flag in os.environ["XLA_FLAGS"].split() if "count=2" not in flag]
    monkeypatch.setenv("XLA_FLAGS", " ".join(flags))
    output = tmp_path / "results" / "speed.json"
    sets = [part for override in TINY for part in ("--set", override)]
    settings = "--precisions float32 --batches 2 --recurrent-batch 2 --layers 1"
    arguments = [*settings.split(), "--length", 8, "--seconds", 0.01, *sets]
    jax = {"backend": "jax", "blocked": ["tensorflow"]}
    process = door(SCRIPT, *arguments, "--output", output, **jax)
    assert process.returncode == 0, process.stderr

    result = json.loads(output.read_text())
    assert result["backend"] == "jax"
    assert result["device"]
    assert result["versions"] == versions()
    assert result["versions"].keys() >= {"python", "keras", "numpy", "jax", "jaxlib"}
    assert result["preset"] == "qanet"
    assert result["set"] == TINY
    rows = result["rows"]
    assert [(row["model"], row["batch"], row["mode"]) for row in rows] == [
        ("qanet", 2, "prediction"),
        ("qanet", 2, "training"),
        ("rnn-1", 2, "prediction"),
        ("rnn-1", 2, "training"),
    ]
    assert table(process) == [[row["model"], row["mode"]] for row in rows]
    for row in rows:
        assert row["precision"] == "float32"
        assert (row["context_length"], row["question_length"]) == (8, 4)
        seconds = row["milliseconds"] / 1000
        assert 0 < seconds < row["compile_seconds"] + 0.1
        assert row["examples_per_second"] == pytest.approx(
            row["batch"] / seconds, rel=0.01
        )
        # A processor does not tell its memory.
        assert row["peak_gib"] is None
    for qanet, recurrent in zip(rows[:2], rows[2:], strict=True):
        assert qanet["gflops"] > 0
        assert qanet["share"] == pytest.approx(
            qanet["gflops"] / qanet["matrix_gflops"], abs=1e-4 + 0.1 * qanet["share"]
        )
        assert "times_qanet" not in qanet
        assert recurrent["gflops"] is None
        assert recurrent["share"] is None
        assert recurrent["times_qanet"] == pytest.approx(
            recurrent["milliseconds"] / qanet["milliseconds"], abs=0.01
        )


@pytest.fixture
def benchmark(script, tmp_path):
    options = argparse.Namespace(
        preset="qanet", set=TINY, length=8, seconds=0.01, output=tmp_path / "speed.json"
    )
    device = SimpleNamespace(
        peak_bytes=lambda: None, matrix_rate=lambda kind, seconds: 1.0
    )
    return script.Benchmark(options, device, {"preset": "qanet"})


@pytest.mark.parametrize(
    ("failure", "has_failed"),
    [
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory\ntrying to allocate"), False),
        (RuntimeError("something else\nindeed"), True),
    ],
)
def test_what_fails_is_a_row_and_the_next_is_tried(benchmark, failure, has_failed):
    def encoder(**_):
        raise failure

    for batch in (2, 3):
        benchmark.measure("broken", encoder, batch, "bfloat16")
    (first, _) = str(failure).splitlines()
    row = {"model": "broken", "mode": None, "precision": "bfloat16"}
    rows = [
        row | {"batch": batch, "error": f"RuntimeError: {first}"} for batch in (2, 3)
    ]
    stored = json.loads(benchmark.options.output.read_text())
    assert stored == {"preset": "qanet", "rows": rows}
    assert benchmark.has_failed is has_failed


def test_a_memory_failure_is_known_by_what_led_to_another(script):
    deleted = ValueError("the array has been deleted")
    assert not script.is_memory_failure(deleted)
    deleted.__context__ = MemoryError()
    assert script.is_memory_failure(deleted)


def test_seconds_of_a_step_are_the_median_of_groups(script, monkeypatch):
    clock, counts = [0.0], []
    counter = SimpleNamespace(perf_counter=lambda: clock[0])
    monkeypatch.setitem(script.step_seconds.__globals__, "time", counter)

    def steps(count):
        counts.append(count)
        for i in range(count):
            # One that takes long in the first group, and nothing else of it counts.
            clock[0] += 100.0 if i == 1 and count > 2 else 2.0
            yield np.zeros(())

    assert script.step_seconds(steps, 30.0) == 2.0
    # Five groups of three, after one that belongs to none.
    assert counts == [2, 16]
    assert script.first_seconds(steps) == 2.0


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_the_rate_of_products_is_measured_in_each_precision(script, kind):
    assert script.matrix_rate(8, kind, 0.0, queued=2) > 0


# The recurrent stack.


def masked(lengths, size):
    return np.arange(size) < np.array(lengths)[:, None]


def weights_of_keras(kernel, recurrent, bias):
    """Those of its two layers, whose gates are in the order i, f, g, o."""

    def gates(array):
        i, f, o, g = np.split(array, 4, axis=-1)
        return np.concatenate([i, f, g, o], axis=-1)

    kernels, biases = np.split(kernel, 2, axis=-1), np.split(bias, 2)
    both = zip(kernels, recurrent, biases, strict=True)
    return [gates(array) for direction in both for array in direction]


def test_stack_is_that_of_masked_bidirectional_layers(script, rng, randomise):
    x = rng.normal(size=(3, 6, 8)).astype("float32")
    mask = masked([6, 4, 1], 6)
    stack = script.RecurrentStack(2, dropout=0.5)
    stack(x, mask=mask)
    randomise(stack)
    expected = x
    for lstm in stack.lstms:
        layer = keras.layers.Bidirectional(keras.layers.LSTM(4, return_sequences=True))
        layer.build(x.shape)
        layer.set_weights(weights_of_keras(*lstm.get_weights()))
        expected = layer(expected, mask=mask)
    actual = ops.convert_to_numpy(stack(x, mask=mask))
    np.testing.assert_allclose(
        actual, ops.convert_to_numpy(expected), rtol=1e-5, atol=1e-6
    )
    assert np.abs(actual[mask]).min() > 0
    assert not actual[~mask].any()


def test_padding_leaks_nowhere(script, rng):
    x = rng.normal(size=(2, 7, 8)).astype("float32")
    mask = masked([7, 3], 7)
    stack = script.RecurrentStack(1)
    expected = ops.convert_to_numpy(stack(x, mask=mask))
    other = np.where(mask[..., None], x, 100 * rng.normal(size=x.shape)).astype(x.dtype)
    np.testing.assert_array_equal(
        ops.convert_to_numpy(stack(other, mask=mask)), expected
    )
    # Nor does its length.
    short = ops.convert_to_numpy(stack(x[1:, :3], mask=mask[1:, :3]))
    np.testing.assert_allclose(short, expected[1:, :3], rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("mixed_bfloat16")
def test_stack_keeps_half_precision(script, rng):
    x = ops.cast(rng.normal(size=(1, 3, 8)), "bfloat16")
    result = script.RecurrentStack(1, dropout=0.5)(
        x, mask=masked([3], 3), training=True
    )
    assert keras.backend.standardize_dtype(result.dtype) == "bfloat16"


def test_stack_takes_the_place_of_the_encoder_stacks(script):
    config = script.load_preset("qanet", TINY)
    encoder = script.partial(script.recurrent, 3)
    model = script.build_qanet(config.model, script.SIZES, encoder)
    stacks = [
        layer for layer in model.layers if isinstance(layer, script.RecurrentStack)
    ]
    assert [stack.name for stack in stacks] == ["embedding_encoder", "model_encoder"]
    assert all(stack.depth == 3 for stack in stacks)
    assert all(stack.dropout == config.model.dropout for stack in stacks)
    assert not any(
        isinstance(layer, script.EncoderStack) for layer in model._flatten_layers()
    )
