"""Sentences of documents, for tests of pre-training."""

import numpy as np

from qanet.pretraining.pairs import Sentences


def made_sentences(lengths):
    """Sentences of these lengths; no piece stands twice."""
    flat = [size for document in lengths for size in document]
    begins = np.cumsum([0, *flat])
    firsts = np.cumsum([0, *map(len, lengths)])
    return Sentences(np.arange(begins[-1], dtype=np.int32), begins, firsts)
