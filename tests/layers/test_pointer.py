"""Tests of qanet.layers.pointer."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.pointer import SpanPointer

LENGTHS = (6, 4, 1)
MASK = np.arange(6) < np.array(LENGTHS)[:, None]


@pytest.fixture
def passes(rng):
    return [rng.normal(size=(3, 6, 8)).astype("float32") for _ in range(3)]


def built(passes):
    layer = SpanPointer()
    layer.build(*(output.shape for output in passes))
    return layer


def test_against_numpy(passes, randomise, reference):
    layer = built(passes)
    weights = randomise(layer)

    start, end = layer(*passes, MASK)

    shapes = layer.compute_output_shape(*(output.shape for output in passes))
    assert shapes == (start.shape, end.shape)
    for i, length in enumerate(LENGTHS):
        texts = [output[i, :length].astype("float64") for output in passes]
        expected = reference.span_pointer(*texts, weights)
        for actual, logits in zip((start, end), expected, strict=True):
            actual = ops.convert_to_numpy(actual)[i, :length]
            np.testing.assert_allclose(actual, logits, atol=1e-5)


def test_start_reads_passes_0_and_1_and_end_reads_passes_0_and_2(passes, randomise):
    layer = built(passes)
    randomise(layer)
    start, end = map(ops.convert_to_numpy, layer(*passes, MASK))
    moved = []
    for i in range(3):
        changed = [*passes[:i], passes[i] + 1.0, *passes[i + 1 :]]
        outputs = map(ops.convert_to_numpy, layer(*changed, MASK))
        moved.append(
            [bool(np.any(a != b)) for a, b in zip(outputs, (start, end), strict=True)]
        )

    assert moved == [[True, True], [True, False], [False, True]]


def test_padding_has_no_probability(passes, randomise):
    layer = built(passes)
    randomise(layer)

    for logits in layer(*passes, MASK):
        probabilities = ops.convert_to_numpy(ops.softmax(logits))
        assert np.all(probabilities[~MASK] == 0.0)
        assert np.all(probabilities[MASK] > 0.0)


def test_round_trip(passes, check_round_trip):
    check_round_trip(SpanPointer(), *passes, MASK)


def test_mixed_bfloat16_computes_float32_logits(
    mixed_bfloat16, passes, randomise, reference
):
    """Near 10, where bfloat16 knows sixteenths, they are told apart as ever."""
    layer = built(passes)
    weights = randomise(layer, bound=8.0)
    half = [ops.cast(output, "bfloat16") for output in passes]
    rounded = [ops.convert_to_numpy(ops.cast(x, "float32"))[0] for x in half]

    outputs = layer(*half, MASK)

    expected = reference.span_pointer(*(x.astype("float64") for x in rounded), weights)
    for logits, wanted in zip(outputs, expected, strict=True):
        assert ops.dtype(logits) == "float32"
        actual = ops.convert_to_numpy(logits)
        assert np.all(np.isfinite(actual))
        assert np.max(np.abs(wanted)) > 10
        np.testing.assert_allclose(actual[0], wanted, atol=1e-3)
