"""Tests of qanet.models.attention_over_attention; what all models promise is tested in
test_contract."""

from collections import Counter

import numpy as np
from made_models import (
    SIZES,
    logits_of_each,
    lstm_numbers,
    made_examples,
    repeat_a_word,
    trained_numbers,
)

from qanet.models.attention_over_attention import (
    AoAConfig,
    ClozeConfig,
    build_aoa,
    build_cloze,
)

SETTINGS = {"units": 7, "width": 10, "character_width": 0}
SMALL = {"units": 3, "width": 4, "character_width": 3, "character_filters": 5}

# The unknown word's vector, the projection, and the highway network.
WORD = SIZES.width + SIZES.width * 10 + 2 * 2 * (10 * 10 + 10)


def lstm(width):
    return lstm_numbers(width, 7)


def numpy_cloze(reference, weights, config, example):
    """What the model gives each word of an example at its first place, from the
    formulas."""
    context, question = (
        reference.bidirectional_lstm(x, reference.below(weights, name))
        for name, x in zip(
            ("context", "question"),
            reference.embed_words(example, weights, config),
            strict=True,
        )
    )
    shares = reference.attention_over_attention(context, question)
    columns = example["context_words"], example["context_characters"]
    words = [tuple(word) for word in np.column_stack(columns)]
    sums = Counter()
    for word, share in zip(words, shares, strict=True):
        sums[word] += share
    return [sums.pop(word, 0) for word in words]


def test_the_cloze_reader_against_numpy(rng, randomise, reference):
    """As shares: where a word stands again it is no answer, and has none."""
    config = ClozeConfig(**SMALL)
    model = build_cloze(config, SIZES)
    weights = randomise(model)
    examples = made_examples(rng)
    repeat_a_word(examples[1])

    for example, found in zip(examples, logits_of_each(model, examples), strict=True):
        expected = numpy_cloze(reference, weights, config, example)
        for logits in found:
            np.testing.assert_allclose(np.exp(logits), expected, rtol=1e-4)


def test_half_precision_does_not_round_the_logarithms(mixed_bfloat16):
    model = build_aoa(AoAConfig(**SMALL), SIZES)
    for name in ("start", "end"):
        for part in ("attention", "column", "vectors"):
            assert model.get_layer(f"{name}_{part}").output.dtype == "float32"


def numpy_aoa(reference, weights, config, example):
    """The reader of spans on one example, from the formulas."""

    def below(name):
        return reference.below(weights, name)

    def read(x, name):
        return reference.bidirectional_lstm(x, below(name))

    context, question = (
        read(x, "encoder") for x in reference.embed_words(example, weights, config)
    )
    aware = reference.bidirectional_attention(context, question, below("attention"))

    def attended(x):
        shares = reference.attention_over_attention(x, question)
        return np.concatenate([x, np.log(shares)[:, None]], axis=1)

    start = read(aware, "start")
    end = read(start, "end")
    return reference.span_pointer(
        aware, attended(start), attended(end), below("pointer")
    )


def test_the_reader_of_spans_against_numpy(rng, randomise, reference):
    config = AoAConfig(**SMALL)
    model = build_aoa(config, SIZES)
    weights = randomise(model)
    examples = made_examples(rng)

    for example, found in zip(examples, logits_of_each(model, examples), strict=True):
        expected = numpy_aoa(reference, weights, config, example)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_parameter_count_of_the_cloze_reader():
    """An LSTM for each text; what comes after them has no parameters."""
    model = build_cloze(ClozeConfig(**SETTINGS), SIZES)
    assert trained_numbers(model) == WORD + 2 * lstm(10)


def test_parameter_count_of_the_reader_of_spans():
    """An LSTM for both texts, one for the start and one for the end; attention-over-
    attention has no parameters."""
    model = build_aoa(AoAConfig(**SETTINGS), SIZES)
    aware = 4 * 14
    attention = 3 * 14
    pointers = 2 * (aware + 14 + 1)
    expected = WORD + lstm(10) + attention + lstm(aware) + lstm(14) + pointers
    assert trained_numbers(model) == expected


def test_the_cloze_reader_tells_start_and_end_alike():
    model = build_cloze(ClozeConfig(**SETTINGS), SIZES)
    assert model.get_layer("end_logits").input is model.output["start_logits"]
