"""Examples, windows and plans, for the tests of what is made of them."""

import numpy as np

from qanet.config import ORIGINAL, DataConfig
from qanet.datasets.features import build_features
from qanet.datasets.plans import plan_training
from qanet.datasets.squad import Example, Span
from qanet.datasets.windows import Windows

WORDS = ["The", "cat", "sat", "on", "a", "mat", "éclair", "2024"]


def data_config(*buckets, **limits):
    limits = {"context_limit": buckets[-1], "answer_limit": buckets[-1]} | limits
    return DataConfig(buckets=buckets, **limits)


def text(length, seed=0):
    """A text of so many tokens, for each seed another."""
    return " ".join(WORDS[(seed + i * i) % len(WORDS)] for i in range(length))


def example(context_length, answer=None, question_length=3, number=0):
    """An example whose answer is the tokens `answer`, first and last, if any."""
    context = text(context_length, number)
    spans = ()
    if answer is not None:
        words = context.split(" ")
        first, last = answer
        start = len(" ".join([*words[:first], ""]))
        spans = (Span(" ".join(words[first : last + 1]), start),)
    return Example(
        str(number),
        text(question_length, number + 1),
        context,
        spans,
        str(number),
        impossible=not spans,
    )


def features_of(*answers_in_contexts):
    """Features of examples of (context length, answer)."""
    return build_features(
        [
            example(n, answer, number=i)
            for i, (n, answer) in enumerate(answers_in_contexts)
        ]
    )


def windows_of(*lengths):
    """Windows of so many tokens, an example each."""
    lengths = np.array(lengths, dtype=np.int64)
    return Windows(np.arange(len(lengths)), np.zeros_like(lengths), lengths)


def planned(windows, config, batch_size, steps, seed):
    """The plan of a training on these windows alone."""
    sources = {ORIGINAL: len(windows)}
    return plan_training(windows, sources, config, batch_size, steps, seed)
