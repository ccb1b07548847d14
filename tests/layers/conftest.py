"""Two texts that meet, for the layers between them."""

from functools import partial

import numpy as np
import pytest

LENGTHS = ((4, 3), (2, 1))


@pytest.fixture
def lengths():
    """Words of each context and question of `texts`."""
    return LENGTHS


@pytest.fixture
def texts(rng):
    """Vectors of contexts and questions, noise at their padding, and the masks."""
    context = rng.normal(size=(2, 4, 5)).astype("float32")
    question = rng.normal(size=(2, 3, 5)).astype("float32")
    contexts, questions = np.array(LENGTHS).T
    context_mask = np.arange(4) < contexts[:, None]
    question_mask = np.arange(3) < questions[:, None]
    return context, question, context_mask, question_mask


@pytest.fixture
def softmax(reference):
    """Of a NumPy vector."""
    return partial(reference.softmax, axis=0)
