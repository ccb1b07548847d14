"""Tests of qanet.models.slqa; what all models promise is tested in test_contract."""

import numpy as np
import pytest
from made_models import (
    SIZES,
    logits_of_each,
    lstm_numbers,
    made_examples,
    repeat_a_word,
    trained_numbers,
    with_sizes,
)

from qanet.models.slqa import SLQAConfig, build_slqa, slqa_flops

CONTEXTUAL = {"contextual": "a directory", "contextual_output": True}


def numpy_slqa(reference, weights, config, example):
    """The model on one example, from the formulas."""

    def below(name):
        return reference.below(weights, name)

    def read(x, name):
        return reference.bidirectional_lstm(x, below(name))

    def fuse(x, y, name):
        return reference.gated_fusion(x, y, below(name))

    context, question = (
        np.concatenate([read(x, "encoder"), x], axis=1)
        for x in reference.embed_words(example, weights, config)
    )
    of_context, of_question = reference.co_attention(
        context, question, below("co_attention")
    )
    context = read(fuse(context, of_context, "context_fusion"), "context")
    question = read(fuse(question, of_question, "question_fusion"), "question")

    aligned = reference.self_alignment(context, below("self_alignment"))
    context = read(fuse(context, aligned, "self_fusion"), "fused_context")
    question = reference.attention_pooling(question, below("question_summary"))
    return reference.bilinear_pointer(context, question, below("pointer"))


def test_against_numpy(rng, randomise, reference):
    config = SLQAConfig(units=3, width=4, character_width=3, character_filters=5)
    model = build_slqa(config, SIZES)
    weights = randomise(model)
    examples = made_examples(rng)
    repeat_a_word(examples[1])

    for example, found in zip(examples, logits_of_each(model, examples), strict=True):
        expected = numpy_slqa(reference, weights, config, example)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_language_model_that_is_read_twice_counts_twice():
    def operations(width, **settings):
        config = SLQAConfig(contextual="a directory", **settings)
        return slqa_flops(config, with_sizes(contextual=(3, width)), 10, 4)

    once = operations(50) - operations(5)
    twice = operations(50, contextual_output=True) - operations(
        5, contextual_output=True
    )
    assert twice == 2 * once > 0


@pytest.mark.parametrize("output", [{}, CONTEXTUAL])
def test_parameter_count(output):
    """From the sizes of the paper's matrices and vectors."""
    config = SLQAConfig(
        units=7, width=10, character_width=0, question_match=False, **output
    )
    sizes = with_sizes(contextual=(3, 5)) if output else SIZES
    model = build_slqa(config, sizes)

    def lstm(width):
        return lstm_numbers(width, 7)

    def fusion(width):
        return 4 * width * (width + 1) + width + 1

    # The unknown word's vector, and what the language model's become: two scalar
    # mixes, of three layers each, with their projections.
    word = SIZES.width * 10 + SIZES.width
    highway = 2 * 2 * (10 * 10 + 10)
    encoded = 2 * 7 + 10
    if output:
        mix = 3 + 1
        word += mix + 5 * 10 + mix + 5 * 10
        encoded += 10
    encoder = lstm(10) + encoded * encoded + 2 * fusion(encoded)
    context = lstm(encoded) + 14 * 14 + fusion(14) + lstm(14)
    question = lstm(encoded) + 14
    expected = word + highway + encoder + context + question + 2 * 14 * 14
    assert trained_numbers(model) == expected


def test_context_and_question_share_the_encoder_alone():
    model = build_slqa(SLQAConfig(units=3, width=4), SIZES)
    calls = {
        name: len(model.get_layer(name)._inbound_nodes)
        for name in ("encoder", "context", "question", "fused_context")
    }
    assert calls == {"encoder": 2, "context": 1, "question": 1, "fused_context": 1}
