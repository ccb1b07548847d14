"""Tests of qanet.layers.unfold."""

import numpy as np
import pytest
from keras import ops

from qanet.layers.input_embedding import InputEmbedding
from qanet.layers.unfold import Unfold

pytestmark = pytest.mark.usefixtures("fixed_seed")

CHARACTERS = {"characters": 7, "width": 4, "filters": 5, "kernel_size": 3}


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("highway_first", [False, True])
@pytest.mark.parametrize("characters", [None, CHARACTERS])
def test_gives_the_vectors_of_the_embedding(
    characters, highway_first, norm, rng, randomise
):
    rows = rng.integers(1, 9, (2, 4)).astype("int32")
    spelled = rng.integers(1, 7, (2, 4, 5)).astype("int32")
    embedding = InputEmbedding(
        8,
        {"rows": 9, "width": 6},
        characters,
        highway_first=highway_first,
        norm=norm,
    )
    embedding.build(rows.shape, spelled.shape)
    randomise(embedding)

    folded = embedding.fold()
    vectors = Unfold(embedding)(folded[rows], spelled)

    assert folded.shape == (9, embedding.folded_width)
    np.testing.assert_allclose(
        ops.convert_to_numpy(vectors),
        ops.convert_to_numpy(embedding(rows, spelled)),
        atol=1e-5,
    )
