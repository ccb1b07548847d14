"""Tests of qanet.models.bidaf; what all models promise is tested in test_contract."""

import keras
from made_models import SIZES, lstm_numbers, trained_numbers, with_sizes

from qanet.models.bidaf import BiDAFConfig, build_bidaf


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
