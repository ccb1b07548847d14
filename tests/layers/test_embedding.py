"""Tests of qanet.layers.embedding."""

import keras
import numpy as np
import pytest
from keras import ops

from qanet.layers import embedding
from qanet.layers.dropout import StepSeed, drop_types
from qanet.layers.embedding import (
    CharacterEmbedding,
    WordEmbedding,
    look_up_small,
)

ROWS = np.array([[2, 4, 1, 2, 0], [1, 3, 0, 0, 0]], "int32")
# Words of 3, 1, 6 and no characters, an unknown character, and padding.
SPELLINGS = np.array(
    [
        [[2, 3, 4, 0, 0, 0], [5, 0, 0, 0, 0, 0], [2, 1, 3, 2, 4, 5]],
        [[1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [3, 3, 0, 0, 0, 0]],
    ],
    "int32",
)


@pytest.mark.parametrize("trainable_rows", [False, True])
def test_words_are_rows_of_the_table(trainable_rows, randomise):
    layer = WordEmbedding(5, 3, trainable_rows=trainable_rows)
    layer.build(ROWS.shape)
    weights = randomise(layer)

    output = ops.convert_to_numpy(layer(ROWS))

    for position, row in np.ndenumerate(ROWS):
        expected = {0: np.zeros(3), 1: weights["unknown"]}.get(row)
        if expected is None:
            expected = weights["table"][row]
        np.testing.assert_allclose(output[position], expected, atol=1e-7)
    assert layer.compute_output_shape(ROWS.shape) == output.shape


def test_pretrained_rows_are_frozen_and_the_unknown_word_is_trained(rng):
    layer = WordEmbedding(5, 3)
    layer.build(ROWS.shape)
    table = rng.normal(size=(5, 3)).astype("float32")
    layer.load_table(table)

    output = ops.convert_to_numpy(layer(ROWS))

    assert [tuple(weight.shape) for weight in layer.trainable_variables] == [(3,)]
    np.testing.assert_array_equal(output[ROWS >= 2], table[ROWS[ROWS >= 2]])


def test_tuned_rows_are_added_to_the_first_words_alone(randomise, gradients, call_with):
    layer = WordEmbedding(6, 3, tuned_rows=2)
    layer.build(ROWS.shape)
    weights = randomise(layer)

    output = ops.convert_to_numpy(layer(ROWS))

    tuning = {2: weights["tuning"][0], 3: weights["tuning"][1]}
    for position, row in np.ndenumerate(ROWS):
        if row >= 2:
            expected = weights["table"][row] + tuning.get(row, 0.0)
            np.testing.assert_allclose(output[position], expected, atol=1e-6)
    np.testing.assert_allclose(output[ROWS == 1], [weights["unknown"]] * 2, atol=1e-6)
    assert not output[ROWS == 0].any()

    def loss(*values):
        return ops.sum(call_with(layer, values, ROWS))

    names = [weight.name for weight in layer.trainable_variables]
    values = [weights[name].astype("float32") for name in names]
    learnt = dict(zip(names, gradients(loss, *values), strict=True))
    # Row 2 stands twice, row 3 once.
    np.testing.assert_allclose(learnt["tuning"], [[2.0] * 3, [1.0] * 3])


def test_tuned_rows_begin_as_they_were_given(rng):
    layer = WordEmbedding(6, 3, tuned_rows=4)
    layer.build(ROWS.shape)
    table = rng.normal(size=(6, 3)).astype("float32")
    layer.load_table(table)

    output = ops.convert_to_numpy(layer(ROWS))

    np.testing.assert_array_equal(output[ROWS >= 2], table[ROWS[ROWS >= 2]])


def test_null_word_row_learns_nothing(randomise, gradients, call_with):
    layer = WordEmbedding(5, 3, trainable_rows=True)
    layer.build(ROWS.shape)
    randomise(layer)
    names = [weight.name for weight in layer.trainable_variables]

    def loss(*values):
        return ops.sum(call_with(layer, values, ROWS))

    learnt = dict(zip(names, gradients(loss, *layer.get_weights()), strict=True))

    # The row of unknown words is the vector `unknown`; those of the table are unused.
    assert np.all(learnt["table"][:2] == 0.0)
    assert np.all(learnt["table"][2:] != 0.0)
    np.testing.assert_array_equal(learnt["unknown"], np.full(3, 2.0))


@pytest.mark.parametrize(("filters", "kernel_size"), [(0, 1), (4, 3), (4, 5), (4, 2)])
def test_characters_of_a_word_against_numpy(filters, kernel_size, randomise, reference):
    layer = CharacterEmbedding(6, 3, filters, kernel_size)
    layer.build(SPELLINGS.shape)
    weights = randomise(layer)

    output = ops.convert_to_numpy(layer(SPELLINGS))

    assert layer.compute_output_shape(SPELLINGS.shape) == output.shape
    for actual, words in zip(output, SPELLINGS, strict=True):
        expected = reference.character_embedding(words, weights, filters, kernel_size)
        np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_character_convolution_does_not_mix_neighbouring_words(randomise):
    layer = CharacterEmbedding(6, 3, 4, 5)
    layer.build(SPELLINGS.shape)
    randomise(layer)
    other = SPELLINGS.copy()
    other[:, 1] = [4, 4, 4, 4, 4, 4]

    before = ops.convert_to_numpy(layer(SPELLINGS))
    after = ops.convert_to_numpy(layer(other))

    np.testing.assert_array_equal(before[:, [0, 2]], after[:, [0, 2]])
    assert np.any(before[:, 1] != after[:, 1])


def test_product_in_the_place_of_a_look_up(rng, gradients, monkeypatch):
    """What accelerators compute: the same, and no sum over places one by one."""
    table = rng.normal(size=(6, 3)).astype("float32")
    upstream = rng.normal(size=(*SPELLINGS.shape, 3)).astype("float32")

    def loss(table):
        return ops.sum(look_up_small(table, SPELLINGS) * upstream)

    looked_up = ops.convert_to_numpy(look_up_small(table, SPELLINGS))
    (gradient,) = gradients(loss, table)
    monkeypatch.setattr(embedding, "_take", embedding._multiply)
    product = ops.convert_to_numpy(look_up_small(table, SPELLINGS))
    (product_gradient,) = gradients(loss, table)

    np.testing.assert_array_equal(looked_up, table[SPELLINGS])
    np.testing.assert_allclose(product, looked_up, atol=1e-6)
    expected = np.zeros_like(table)
    np.add.at(expected, SPELLINGS, upstream)
    np.testing.assert_allclose(gradient, expected, atol=1e-5)
    np.testing.assert_allclose(product_gradient, expected, atol=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="reads JAX' programs")
@pytest.mark.parametrize(
    ("platform", "scatters"), [("cpu", True), ("cuda", False), ("tpu", False)]
)
def test_accelerators_scatter_no_gradients(platform, scatters):
    import jax

    def loss(table):
        return ops.sum(ops.square(look_up_small(table, SPELLINGS)))

    step = jax.jit(jax.grad(loss))
    exported = jax.export.export(step, platforms=[platform])(np.ones((6, 3), "f4"))

    assert (".scatter" in exported.mlir_module()) == scatters


@pytest.mark.parametrize("filters", [0, 4])
def test_neither_convolution_nor_maximum_runs_over_padding(filters, randomise):
    layer = CharacterEmbedding(6, 3, filters, 5)
    layer.build(SPELLINGS.shape)
    randomise(layer)
    wider = np.pad(SPELLINGS, ((0, 0), (0, 0), (0, 4)))

    np.testing.assert_allclose(
        ops.convert_to_numpy(layer(wider)),
        ops.convert_to_numpy(layer(SPELLINGS)),
        atol=1e-6,
    )


@pytest.mark.parametrize("filters", [0, 4])
def test_null_character_row_has_no_effect_and_learns_nothing(
    filters, randomise, gradients, call_with
):
    layer = CharacterEmbedding(6, 3, filters, 5)
    layer.build(SPELLINGS.shape)
    randomise(layer)
    before = ops.convert_to_numpy(layer(SPELLINGS))

    def loss(*values):
        return ops.sum(ops.square(call_with(layer, values, SPELLINGS)))

    table_gradient, *_ = gradients(loss, *layer.get_weights())
    table, *others = layer.get_weights()
    table[0] = 1000.0
    layer.set_weights([table, *others])

    np.testing.assert_array_equal(ops.convert_to_numpy(layer(SPELLINGS)), before)
    assert np.all(table_gradient[0] == 0.0)
    assert np.any(table_gradient[1:] != 0.0)


# Dropout of whole types, with a seed under which some fall and some do not.

SEED = np.array([3, 1], "uint32")


def scales_of_types(layer, count):
    """The factor, 0 or 2 at rate 0.5, of each of the first types under `SEED`."""
    scales = drop_types(ops.ones((count, 1)), ops.arange(count), 0.5, SEED)
    scales = ops.convert_to_numpy(scales)
    assert set(scales[1:].ravel().tolist()) == {0.0, 2.0}
    return scales


@pytest.mark.parametrize("trainable_rows", [False, True])
def test_dropped_words_have_no_vector(trainable_rows, randomise):
    layer = WordEmbedding(5, 3, trainable_rows, type_dropout=0.5)
    layer.build(ROWS.shape)
    randomise(layer)

    output = ops.convert_to_numpy(layer(ROWS, SEED, training=True))

    whole = ops.convert_to_numpy(layer(ROWS, SEED))
    np.testing.assert_allclose(output, whole * scales_of_types(layer, 5)[ROWS])


@pytest.mark.parametrize("filters", [0, 4])
def test_dropped_characters_have_no_vector(filters, randomise, reference):
    layer = CharacterEmbedding(6, 3, filters, 3, type_dropout=0.5)
    layer.build(SPELLINGS.shape)
    weights = randomise(layer)

    output = ops.convert_to_numpy(layer(SPELLINGS, SEED, training=True))
    whole = ops.convert_to_numpy(layer(SPELLINGS, SEED))

    dropped = weights | {"table": weights["table"] * scales_of_types(layer, 6)}
    for result, values in ((output, dropped), (whole, weights)):
        expected = reference.character_embedding(SPELLINGS[0], values, filters, 3)
        np.testing.assert_allclose(result[0], expected, atol=1e-5)


@pytest.mark.parametrize("precision", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize(
    ("layer", "rows"),
    [
        (lambda dtype: WordEmbedding(300, 1, True, 0.5, dtype=dtype), (99,)),
        (lambda dtype: CharacterEmbedding(300, 1, 0, 1, 0.5, dtype=dtype), (99, 1)),
        (lambda dtype: CharacterEmbedding(300, 1, 2, 1, 0.5, dtype=dtype), (99, 1)),
    ],
    ids=["words", "characters", "convolved"],
)
def test_compiled_steps_drop_the_same_in_two_texts_and_other_types_each_time(
    layer, rows, precision
):
    keras.utils.set_random_seed(5)
    layer, x = layer(precision), keras.Input(rows, dtype="int32")
    seed = StepSeed()(x)
    one, two = layer(x, seed), layer(x[:, ::-1], seed)[:, ::-1]
    model = keras.Model(x, {"text": one, "difference": one - two})
    losses = {"text": "mse", "difference": "mse"}
    model.compile(keras.optimizers.SGD(0.0), losses, jit_compile=True)
    numbers = np.arange(2 * 99).reshape(2, *rows) + 2
    zeros = np.zeros((2, 99, layer.compute_output_shape((1, *rows))[-1]))
    targets = {"text": zeros, "difference": zeros}

    logs = [model.train_on_batch(numbers, targets, return_dict=True) for _ in "123"]

    assert all(step["difference_loss"] == 0.0 for step in logs)
    assert len({float(step["text_loss"]) for step in logs}) == 3


def test_round_trip(check_round_trip):
    check_round_trip(WordEmbedding(5, 3), ROWS)
    check_round_trip(WordEmbedding(5, 3, True, type_dropout=0.5), ROWS)
    check_round_trip(CharacterEmbedding(6, 3, 4, 3), SPELLINGS)
    check_round_trip(CharacterEmbedding(6, 3, type_dropout=0.5), SPELLINGS)


@pytest.mark.parametrize("filters", [0, 4])
def test_mixed_bfloat16(filters, mixed_bfloat16, randomise, reference):
    words, characters = WordEmbedding(5, 3), CharacterEmbedding(6, 3, filters, 3)

    assert ops.dtype(words(ROWS)) == "bfloat16"
    assert ops.dtype(characters(SPELLINGS)) == "bfloat16"
    weights = randomise(characters)
    output = ops.convert_to_numpy(characters(SPELLINGS)).astype("float64")
    expected = reference.character_embedding(SPELLINGS[0], weights, filters, 3)
    np.testing.assert_allclose(output[0], expected, atol=0.03)
