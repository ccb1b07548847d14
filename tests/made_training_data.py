"""Training data with what is hard to store."""

import numpy as np

from qanet.datasets.features import build_features
from qanet.datasets.squad import COUNTS as NAMES
from qanet.datasets.squad import Example, Span
from qanet.datasets.training_data import TrainingData
from qanet.text.vocabulary import RESERVED, Vocabulary

COUNTS = {
    split: {name: number for number, name in enumerate((*NAMES, "answers_snapped"))}
    for split in ("train", "dev", "fr")
}


def odd_training_data():
    """Odd characters, no answer, an article in two parts."""
    context, other = "Zoë lives in 東京 \U0001f600.", "Bo lives in Rome."
    train = [
        Example("1", "Where?", context, (Span("東京", 13),)),
        Example("2", "Who?", context, (Span("Zoë", 0),)),
    ]
    # One context in two articles: written as a SQuAD file they change their order.
    dev = [
        Example("a", "Where?", other, (Span("Rome", 12), Span("in Rome", 9)), "One"),
        Example("b", "Why?", context, (), "Two", impossible=True),
        Example("c", "Who?", context, (Span("Zoë", 0),), "One"),
    ]
    vocabulary = Vocabulary(
        [*RESERVED, "lives", "東京"],
        [*RESERVED, "l", "i"],
        characters_per_word=5,
        vectors=np.arange(12, dtype=np.float16).reshape(4, 3),
    )
    features = build_features(train), build_features(dev)
    sources = {"original": len(train) - 1, "fr": 1}
    return TrainingData(features[0], sources, dev, features[1], vocabulary, COUNTS)
