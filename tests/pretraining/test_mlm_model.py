"""Tests of qanet.pretraining.mlm_model."""

import math

import keras
import numpy as np
import pytest
from keras import ops

from qanet.models.bert import BERTConfig, PieceSizes
from qanet.pretraining.mlm_model import build_mlm_model

PIECES = 11
CONFIG = BERTConfig(width=8, blocks=2, heads=2, feed_forward=12)
LENGTHS, PLACES = (8, 6), ((1, 4, 6), (3, 0, 0))


@pytest.fixture
def model(fixed_seed, randomise):
    model = build_mlm_model(CONFIG, PieceSizes(PIECES, 2, 3))
    model.values = randomise(model, bound=0.6)
    return model


@pytest.fixture
def inputs(rng):
    pieces = rng.integers(4, PIECES, (2, 8))
    pieces[1, LENGTHS[1] :] = 0
    segments = (np.arange(8) > 3) * (pieces > 0)
    arrays = {
        "pieces": pieces,
        "segments": segments,
        "masked_positions": np.array(PLACES),
    }
    return {name: array.astype("int32") for name, array in arrays.items()}


def called(model, inputs):
    return {name: np.asarray(array) for name, array in model(inputs).items()}


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def test_heads_against_numpy(model, inputs, reference):
    found = called(model, inputs)
    encoder = keras.Model(model.input, model.get_layer("block_1").output)
    states = np.asarray(encoder(inputs)).astype("float64")
    weights = reference.below(model.values, "predictor")
    table = model.values["embedding/piece"]
    for row, positions in enumerate(PLACES):
        x = states[row, list(positions)]
        x = gelu(x @ weights["transform/kernel"] + weights["transform/bias"])
        x = reference.layer_norm(x, reference.below(weights, "norm"))
        expected = x @ table.T + weights["bias"]
        np.testing.assert_allclose(found["masked_logits"][row], expected, atol=1e-4)
    pooler = reference.below(model.values, "pooler")
    pooled = np.tanh(states[:, 0] @ pooler["kernel"] + pooler["bias"])
    pairs = reference.below(model.values, "next_sentence")
    expected = pooled @ pairs["kernel"] + pairs["bias"]
    np.testing.assert_allclose(found["is_random"], expected, atol=1e-4)
    assert {array.dtype for array in found.values()} == {np.dtype("float32")}


def test_padding_changes_nothing(model, inputs):
    found = called(model, inputs)
    short = {name: array[1:] for name, array in inputs.items()}
    for name in ("pieces", "segments"):
        short[name] = short[name][:, : LENGTHS[1]]
    for name, array in called(model, short).items():
        np.testing.assert_allclose(array[0], found[name][1], atol=1e-5)


def test_the_table_of_pieces_is_there_once(model):
    tables = [v for v in model.variables if PIECES in v.shape and len(v.shape) == 2]
    assert [table.path for table in tables] == ["embedding/piece"]


def test_gradients_reach_every_weight(model, inputs, gradients, call_with, rng):
    upstream = {
        "masked_logits": rng.normal(size=(2, 3, PIECES)).astype("float32"),
        "is_random": rng.normal(size=(2, 2)).astype("float32"),
    }

    def loss(*values):
        outputs = call_with(model, values, inputs)
        return sum(ops.sum(upstream[name] * outputs[name]) for name in upstream)

    variables = model.trainable_variables
    found = gradients(loss, *(np.array(variable) for variable in variables))
    for variable, gradient in zip(variables, found, strict=True):
        assert np.abs(gradient).max() > 1e-6, variable.path
    # By the output, also that of a piece which is not read.
    table = found[[v.path for v in variables].index("embedding/piece")]
    assert np.abs(table[1]).max() > 1e-6


def test_pieces_begin_alike(fixed_seed, inputs):
    """Before training every piece is about as likely as any other."""
    model = build_mlm_model(CONFIG, PieceSizes(PIECES, 2, 3))
    assert np.abs(called(model, inputs)["masked_logits"]).max() < 0.5
