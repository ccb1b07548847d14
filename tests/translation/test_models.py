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


@pytest.fixture
def transformer():
    config = TranslationModelConfig(width=8, layers=2, heads=2, feed_forward=12)
    return build_translation_model(config, PIECES)


def test_the_transformer_against_numpy(transformer, rng, randomise, reference):
    """x + f(norm(x)) for every sub-layer f, and a norm at the end of either side."""
    vectors = rng.normal(size=(PIECES, 8)).astype("float32")
    transformer.vectors.assign(vectors)

    def norm(layer, x):
        return reference.layer_norm(x, weights[layer.name, id(layer)])

    def feed(block, x):
        normed = norm(block.feed_forward_norm, x)
        layer = block.feed_forward
        return x + reference.feed_forward(normed, weights[layer.name, id(layer)])

    def attend(layer, x, memory, mask):
        mine = weights[layer.name, id(layer)]
        return reference.attention(x, memory, mine, 2, mask)

    def embed(tokens):
        signal = reference.position_signal(len(tokens), 8)
        return vectors[tokens].astype("float64") * 8**0.5 + signal

    norms = [transformer.encoder_norm, transformer.decoder_norm]
    layers = [layer for block in transformer.encoder for layer in parts_of(block)]
    layers += [layer for block in transformer.decoder for layer in parts_of(block)]
    weights = {
        (layer.name, id(layer)): randomise(layer, 0.5) for layer in layers + norms
    }
    source, target = np.array([4, 7, 5, 9]), np.array([BEGIN, 6, 8])

    x, everything = embed(source), np.ones((4, 4))
    for block in transformer.encoder:
        normed = norm(block.attention_norm, x)
        x = x + attend(block.attention, normed, normed, everything)
        x = feed(block, x)
    memory = norm(transformer.encoder_norm, x)
    x, causal = embed(target), np.tri(3)
    for block in transformer.decoder:
        normed = norm(block.attention_norm, x)
        x = x + attend(block.attention, normed, normed, causal)
        x = x + attend(block.cross, norm(block.cross_norm, x), memory, np.ones((3, 4)))
        x = feed(block, x)
    expected = norm(transformer.decoder_norm, x) @ vectors.T

    inputs = {"source": source[None], "target": target[None]}
    found = transformer({name: x.astype("int32") for name, x in inputs.items()})
    np.testing.assert_allclose(ops.convert_to_numpy(found)[0], expected, atol=1e-4)


def parts_of(block):
    """The layers of a block that have weights."""
    names = ("attention", "cross", "feed_forward")
    parts = [getattr(block, name, None) for name in names]
    parts += [getattr(block, f"{name}_norm", None) for name in names]
    return [part for part in parts if part is not None]


def test_attention_after_the_recurrent_decoder_against_numpy(rng, reference):
    config = TranslationModelConfig(name="recurrent", width=8, layers=1)
    model = build_translation_model(config, PIECES)
    model.scale.assign(0.7)
    x, encoded, keys = (rng.normal(size=(1, n, 8)).astype("float32") for n in (3, 4, 4))
    real = np.array([[True, True, True, False]])
    found = model._logits((real, encoded, keys, None), x)

    shares = reference.softmax(0.7 * x[0] @ keys[0, :3].T / 8**0.5, axis=1)
    both = np.concatenate([shares @ encoded[0, :3], x[0]], axis=1)
    kernel, bias = map(ops.convert_to_numpy, model.join.weights)
    expected = np.tanh(both @ kernel + bias) @ ops.convert_to_numpy(model.vectors).T
    np.testing.assert_allclose(ops.convert_to_numpy(found)[0], expected, atol=1e-5)


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
