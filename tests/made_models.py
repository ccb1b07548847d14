"""Sizes, inputs and outputs of models, for tests of any of them."""

import math

import numpy as np
from keras import ops

from qanet.models.bert import PieceSizes
from qanet.models.registry import MODELS
from qanet.models.words import EmbeddingSizes

SIZES = EmbeddingSizes(
    rows=9, width=6, characters=7, characters_per_word=5, pretrained=True
)


PIECE_SIZES = PieceSizes(pieces=9, cls=2, sep=3)


def sizes_of(name):
    """What a model of the registry is built on."""
    return PIECE_SIZES if MODELS[name].text == "pieces" else SIZES


def with_sizes(**changes):
    return EmbeddingSizes(**(vars(SIZES) | changes))


def made_examples(rng):
    """Questions on texts of several lengths, without padding."""

    def text(length):
        words = rng.integers(1, SIZES.rows, length)
        shape = (length, SIZES.characters_per_word)
        characters = rng.integers(1, SIZES.characters, shape)
        ends = rng.integers(0, SIZES.characters_per_word + 1, (length, 1))
        cut = np.where(np.arange(SIZES.characters_per_word) < ends, characters, 0)
        return words, cut

    result = []
    for context_length, question_length in ((4, 3), (6, 5), (1, 1)):
        context, question = text(context_length), text(question_length)
        result.append(
            {
                "context_words": context[0],
                "context_characters": context[1],
                "question_words": question[0],
                "question_characters": question[1],
            }
        )
    return result


def repeat_a_word(example):
    """The context's second word stands at its end too, and first in the question."""
    for column in ("words", "characters"):
        context = example[f"context_{column}"]
        context[-1] = example[f"question_{column}"][0] = context[1]


def made_pieces(rng):
    """The same in word pieces."""
    return [
        {
            f"{text}_pieces": rng.integers(1, PIECE_SIZES.pieces, length)
            for text, length in (("context", n), ("question", m))
        }
        for n, m in ((4, 3), (6, 5), (1, 1))
    ]


def length_of(example, text):
    """Tokens of one of its texts."""
    return next(len(v) for name, v in example.items() if name.startswith(text))


def real_context(inputs):
    """Where the tokens of contexts are real, boolean `(batch, length)`."""
    name = next(name for name in ("context_words", "context_pieces") if name in inputs)
    return inputs[name] != 0


def batch(examples, context_length=6, question_length=5):
    """Pads examples to common lengths."""
    lengths = {"context": context_length, "question": question_length}
    result = {}
    for name in examples[0]:
        length = lengths[name.partition("_")[0]]
        result[name] = np.stack(
            [
                np.pad(
                    example[name],
                    [(0, length - len(example[name]))]
                    + [(0, 0)] * (example[name].ndim - 1),
                )
                for example in examples
            ]
        ).astype("int32")
    return result


def logits(model, inputs, **arguments):
    """Start and end logits, `(2, batch, context_length)`."""
    output = model(inputs, **arguments)
    names = ("start_logits", "end_logits")
    return np.stack([ops.convert_to_numpy(output[name]) for name in names])


def logits_of_each(model, examples):
    """Those of each example, `(2, length)`, read in one batch with the others."""
    output = logits(model, batch(examples))
    return [
        output[:, i, : length_of(example, "context")]
        for i, example in enumerate(examples)
    ]


def trained_numbers(model):
    """How many numbers a training changes."""
    return sum(math.prod(weight.shape) for weight in model.trainable_variables)


def lstm_numbers(width, units):
    """Those of a bidirectional LSTM: four gates of input, state and bias each way."""
    return 2 * 4 * units * (width + units + 1)


def products_of(jaxpr):
    """Operations of the matrix products in a JAX program, 2 a multiply-add."""
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            shape = equation.invars[0].aval.shape
            terms = np.prod([shape[axis] for axis in contracted])
            total += 2 * int(np.prod(equation.outvars[0].aval.shape) * terms)
        inner = [p.jaxpr for p in equation.params.values() if hasattr(p, "jaxpr")]
        # A loop takes its steps.
        times = equation.params.get("length", 1)
        total += times * sum(map(products_of, inner))
    return total
