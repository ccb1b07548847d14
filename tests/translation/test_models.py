"""Tests of the translation models: qanet.translation.transformer and .recurrent."""

import keras
import numpy as np
import pytest
from keras import ops

from qanet.layers.dropout import Dropout
from qanet.translation.config import TranslationModelConfig
from qanet.translation.run import build_translation_model
from qanet.translation.subwords import BEGIN, END, PADDING

PIECES = 11


@pytest.fixture(params=["transformer", "recurrent"])
def model(request, fixed_seed):
    config = TranslationModelConfig(
        name=request.param, width=8, layers=2, heads=2, feed_forward=12, dropout=0.2
    )
    return build_translation_model(config, PIECES)


@pytest.fixture
def inputs(rng):
    """Sources of 5, 3 and 6 sub-words, and targets."""
    source = rng.integers(END + 1, PIECES, (3, 6)).astype("int32")
    source[0, 5:] = source[1, 3:] = PADDING
    target = rng.integers(END + 1, PIECES, (3, 4)).astype("int32")
    target[:, 0] = BEGIN
    return {"source": source, "target": target}


def logits_of(model, inputs):
    return ops.convert_to_numpy(model(inputs))


def test_logits(model, inputs):
    logits = logits_of(model, inputs)
    assert logits.shape == (3, 4, PIECES)
    assert logits.dtype == np.float32
    assert np.isfinite(logits).all()
    assert np.ptp(logits, axis=-1).min() > 0.01


def test_one_at_a_time_is_all_at_once(model, inputs):
    memory = model.encode(inputs["source"])
    state = model.begin(memory, 7)
    for position in range(4):
        token = ops.convert_to_tensor(inputs["target"][:, position])
        logits, state = model.advance(memory, state, token, position)
        np.testing.assert_allclose(
            ops.convert_to_numpy(logits),
            logits_of(model, inputs)[:, position],
            atol=1e-5,
        )


def test_nothing_is_seen_of_what_comes_later(model, inputs):
    before = logits_of(model, inputs)
    inputs["target"][:, 2] = END + 1 + (inputs["target"][:, 2] - END) % 7
    after = logits_of(model, inputs)
    np.testing.assert_allclose(after[:, :2], before[:, :2], atol=1e-6)
    assert np.abs(after[:, 2:] - before[:, 2:]).max() > 1e-3


def test_padding_changes_nothing(model, inputs, compiled):
    model = compiled(model)
    padded = np.pad(inputs["source"], [(0, 0), (0, 3)])
    np.testing.assert_allclose(
        logits_of(model, inputs | {"source": padded}),
        logits_of(model, inputs),
        atol=1e-5,
    )
    alone = {name: array[1:2] for name, array in inputs.items()}
    alone["source"] = alone["source"][:, :3]
    np.testing.assert_allclose(
        logits_of(model, alone), logits_of(model, inputs)[1:2], atol=1e-5
    )


def test_every_real_sub_word_of_the_source_counts(model, inputs, compiled):
    model = compiled(model)
    before = logits_of(model, inputs)
    for place in range(6):
        # Of all sources that are so long.
        source = inputs["source"].copy()
        real = source[:, place] != PADDING
        source[real, place] = END + 1 + (source[real, place] - END) % 7
        after = logits_of(model, inputs | {"source": source})
        assert (np.abs(after[:, 0] - before[:, 0]).max(axis=-1) > 1e-4)[real].all()


def test_the_order_of_the_source_counts(model, inputs):
    source = inputs["source"].copy()
    source[2] = source[2, ::-1]
    after = logits_of(model, inputs | {"source": source})
    assert np.abs(after[2] - logits_of(model, inputs)[2]).max() > 1e-4


def test_dropout_is_for_training_alone(model, inputs):
    calm = [ops.convert_to_numpy(model(inputs, training=False)) for _ in range(2)]
    noisy = [ops.convert_to_numpy(model(inputs, training=True)) for _ in range(2)]
    np.testing.assert_array_equal(*calm)
    assert np.abs(noisy[0] - noisy[1]).max() > 1e-3


# Of a transformer: embeddings, and in each of 2 blocks 2 sub-layers, on the source's
# side; on the target's embeddings, and 3. Of the other: embeddings and 2 layers on
# either side, and what is joined.
DROPOUTS = {"Transformer": 1 + 2 * 2 + 1 + 2 * 3, "Recurrent": 3 + 3 + 1}


def test_dropout_acts_wherever_it_should(model, inputs, monkeypatch):
    acted = []

    def call(self, x, training=False):
        acted.append((training, self.rate))
        return x

    monkeypatch.setattr(Dropout, "call", call)
    model(inputs, training=True)
    assert acted == [(True, 0.2)] * DROPOUTS[type(model).__name__]


def test_vectors_are_scaled_by_the_root_of_their_width(fixed_seed):
    config = TranslationModelConfig(
        width=16, layers=1, heads=2, feed_forward=12, dropout=0.0
    )
    model = build_translation_model(config, PIECES)
    tokens = np.array([[END + 1, END + 2]], "int32")
    vectors = ops.convert_to_numpy(model.vectors)
    signal = np.zeros((2, 16), "float32")
    found = ops.convert_to_numpy(model._embed(tokens, signal))
    np.testing.assert_allclose(found[0], 4.0 * vectors[tokens[0]], rtol=1e-6)


def test_every_weight_is_trained(model, inputs):
    """A step moves each one."""
    model.compile(
        optimizer=keras.optimizers.SGD(1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    before = [ops.convert_to_numpy(v) for v in model.trainable_variables]
    model.train_on_batch(inputs, np.roll(inputs["target"], -1, axis=1))
    for variable, old in zip(model.trainable_variables, before, strict=True):
        moved = np.abs(ops.convert_to_numpy(variable) - old).max()
        assert moved > 0, variable.path


def test_the_weights_are_counted():
    """By hand: vectors, attention, feed-forward and norms of the transformer."""
    config = TranslationModelConfig(width=8, layers=2, heads=2, feed_forward=12)
    model = build_translation_model(config, PIECES)
    attention, feed_forward, norm = 4 * 8 * 8, 2 * 8 * 12 + 12 + 8, 2 * 8
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    assert model.count_params() == PIECES * 8 + 2 * (encoder + decoder) + 2 * norm
