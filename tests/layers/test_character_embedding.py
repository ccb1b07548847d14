"""Tests of qanet.layers.character_embedding."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.character_embedding import CharacterEmbedding

# Words of 3, 1, 6 and no characters, an unknown character, and padding.
SPELLINGS = np.array(
    [
        [[2, 3, 4, 0, 0, 0], [5, 0, 0, 0, 0, 0], [2, 1, 3, 2, 4, 5]],
        [[1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [3, 3, 0, 0, 0, 0]],
    ],
    "int32",
)


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


def test_the_greatest_of_a_word_begins_near_zero(rng):
    """What tells words apart is not hidden by what all of them have in common."""
    layer = CharacterEmbedding(200, 64, 200, 5)
    spellings = rng.integers(2, 200, (1, 300, 8))
    output = ops.convert_to_numpy(layer(spellings))
    assert abs(output.mean()) < 0.3 * output.std()


def test_round_trip(check_round_trip):
    check_round_trip(CharacterEmbedding(6, 3, 4, 3), SPELLINGS)
    check_round_trip(CharacterEmbedding(6, 3), SPELLINGS)


@pytest.mark.parametrize("filters", [0, 4])
def test_mixed_bfloat16(filters, mixed_bfloat16, randomise, reference):
    characters = CharacterEmbedding(6, 3, filters, 3)

    assert ops.dtype(characters(SPELLINGS)) == "bfloat16"
    weights = randomise(characters)
    output = ops.convert_to_numpy(characters(SPELLINGS)).astype("float64")
    expected = reference.character_embedding(SPELLINGS[0], weights, filters, 3)
    np.testing.assert_allclose(output[0], expected, atol=0.03)
