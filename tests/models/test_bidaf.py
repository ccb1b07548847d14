"""Tests of qanet.models.bidaf; what all models promise is tested in test_contract."""

import keras
import numpy as np
from made_models import (
    SIZES,
    logits_of_each,
    lstm_numbers,
    made_examples,
    trained_numbers,
    with_sizes,
)

from qanet.models.bidaf import BiDAFConfig, build_bidaf


def numpy_bidaf(reference, weights, config, example):
    """The model on one example, from the formulas."""

    def below(name):
        return reference.below(weights, name)

    def read(x, name):
        return reference.bidirectional_lstm(x, below(name))

    context, question = (
        read(x, "contextual") for x in reference.embed_words(example, weights, config)
    )
    attended = reference.bidirectional_attention(context, question, below("attention"))
    modelled = attended
    for i in range(config.modelling_layers):
        modelled = read(modelled, f"modelling_{i}")
    end_modelled = read(modelled, "end")
    return reference.span_pointer(attended, modelled, end_modelled, below("pointer"))


def test_against_numpy(rng, randomise, reference):
    config = BiDAFConfig(units=3, width=4, character_width=3, character_filters=5)
    model = build_bidaf(config, SIZES)
    weights = randomise(model)
    examples = made_examples(rng)

    for example, found in zip(examples, logits_of_each(model, examples), strict=True):
        expected = numpy_bidaf(reference, weights, config, example)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_parameter_count():
    """From the sizes of the paper's matrices and vectors."""
    config = BiDAFConfig(
        units=7, width=10, character_width=3, character_filters=4, modelling_layers=3
    )
    model = build_bidaf(config, with_sizes(pretrained=True))

    def lstm(width):
        return lstm_numbers(width, 7)

    words = SIZES.width + SIZES.characters * 3 + (5 * 3 + 1) * 4
    projection = (SIZES.width + 4) * 10
    highway = 2 * 2 * (10 * 10 + 10)
    recurrent = lstm(10) + lstm(8 * 7) + 2 * lstm(2 * 7) + lstm(2 * 7)
    pointers = 2 * (8 * 7 + 2 * 7)
    expected = words + projection + highway + recurrent + 3 * 2 * 7 + pointers
    assert trained_numbers(model) == expected


def test_context_and_question_share_one_encoder():
    model = build_bidaf(BiDAFConfig(units=3, width=4), SIZES)
    layers = [layer for layer in model.layers if "dropout" not in layer.name]
    names = [layer.name for layer in layers if layer.name.startswith(("cont", "mod"))]
    assert sorted(set(names) - {"context_vectors"}) == [
        "context_characters",
        "context_words",
        "contextual",
        "modelling_0",
        "modelling_1",
    ]
    calls = model.get_layer("contextual")._inbound_nodes
    assert len(calls) == 2
    assert keras.backend.standardize_dtype(model.output["start_logits"].dtype) == (
        "float32"
    )


def test_words_alone():
    model = build_bidaf(BiDAFConfig(units=3, width=4, character_width=0), SIZES)
    assert not [weight for weight in model.weights if "characters" in weight.path]
