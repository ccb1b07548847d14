"""Tests of qanet.layers.input_embedding."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.input_embedding import InputEmbedding

pytestmark = pytest.mark.usefixtures("fixed_seed")

WORDS = {"rows": 9, "width": 6}
CHARACTERS = {"characters": 7, "width": 4, "filters": 5, "kernel_size": 3}


@pytest.fixture
def text(rng):
    """Rows and characters of two texts."""
    rows = rng.integers(1, 9, (2, 4)).astype("int32")
    return rows, rng.integers(1, 7, (2, 4, 5)).astype("int32")


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("highway_first", [False, True])
def test_against_numpy(highway_first, norm, text, randomise, reference):
    layer = InputEmbedding(
        8, WORDS, CHARACTERS, highway_layers=2, highway_first=highway_first, norm=norm
    )
    layer.build(*(part.shape for part in text))
    weights = randomise(layer)

    output = ops.convert_to_numpy(layer(*text))

    for actual, rows, characters in zip(output, *text, strict=True):
        expected = reference.input_embedding(
            rows, characters, weights, 5, 3, 2, highway_first, norm
        )
        np.testing.assert_allclose(actual, expected, atol=1e-5)
    assert output.shape == (2, 4, 8)


def test_words_alone(text, randomise):
    layer = InputEmbedding(8, WORDS, None, highway_layers=0, norm=False)
    layer.build(*(part.shape for part in text))
    weights = randomise(layer)
    rows = text[0]
    vectors = np.where(
        rows[..., None] == 1, weights["words/unknown"], weights["words/table"][rows]
    )
    expected = vectors @ weights["projection/kernel"]
    np.testing.assert_allclose(ops.convert_to_numpy(layer(*text)), expected, atol=1e-5)


def test_a_word_has_the_same_vector_wherever_it_stands(text, randomise):
    layer = InputEmbedding(8, WORDS, CHARACTERS)
    layer.build(*(part.shape for part in text))
    randomise(layer)

    output = ops.convert_to_numpy(layer(*text))
    turned = ops.convert_to_numpy(layer(*(part[::-1, ::-1] for part in text)))

    np.testing.assert_allclose(turned[::-1, ::-1], output, atol=1e-6)


@pytest.mark.parametrize("rate", ["word_dropout", "character_dropout", "dropout"])
def test_each_rate_acts_in_training_alone(rate, text):
    layer = InputEmbedding(8, WORDS, CHARACTERS, **{rate: 0.5})

    first, second = (
        ops.convert_to_numpy(layer(*text, training=True)) for _ in range(2)
    )

    assert np.any(first != second)
    np.testing.assert_array_equal(
        ops.convert_to_numpy(layer(*text)), ops.convert_to_numpy(layer(*text))
    )


@pytest.mark.parametrize(
    ("rate", "kept"), [("word_dropout", 1), ("character_dropout", 0)]
)
def test_each_rate_drops_its_own(rate, kept, text):
    """All of it, so that what it stands for makes no difference."""
    layer = InputEmbedding(8, WORDS, CHARACTERS, **{rate: 1 - 1e-12})
    other = [part[::-1] for part in text]
    other[kept] = text[kept]
    found = [
        ops.convert_to_numpy(layer(*some, training=True))
        for some in (text, other, [part[::-1] for part in text])
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert np.any(found[0] != found[2])


def test_round_trip(text, check_round_trip):
    settings = {"highway_first": False, "norm": False, "dropout": 0.1}
    check_round_trip(InputEmbedding(8, WORDS, CHARACTERS, **settings), *text)
