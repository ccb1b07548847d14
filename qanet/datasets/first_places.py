"""Answers of one word at the first place of that word, as cloze readers tell them."""

from dataclasses import replace

import numpy as np

from qanet.datasets.features import Features
from qanet.datasets.windows import Windows
from qanet.text.vocabulary import UNKNOWN


def at_first_places(
    features: Features, table: dict[str, np.ndarray], windows: Windows
) -> Features:
    """Moves answers to where `qanet.layers.attention_sum` gives their word its sum.

    Args:
        features: the examples; those with a window have an answer of one token.
        table: the columns `words` and `characters` of the words of `features`.
        windows: one window an example.
    """
    rows, characters = table["words"], table["characters"]
    # Without a row and with an unknown character a word is like no other, see there.
    unlike = (rows == UNKNOWN) & np.any(characters == UNKNOWN, axis=1)
    spelled = np.column_stack([rows, characters])
    _, alike = np.unique(spelled, axis=0, return_inverse=True)
    words = alike.reshape(-1)[features.context_words]
    starts = features.starts.copy()
    begins = features.context_splits[features.context_of]
    for example, offset in zip(windows.examples, windows.offsets, strict=True):
        begin, place = begins[example], begins[example] + starts[example]
        if not unlike[features.context_words[place]]:
            earlier = words[begin + offset : place + 1]
            starts[example] = offset + np.argmax(earlier == words[place])
    return replace(features, starts=starts, ends=starts.copy())
