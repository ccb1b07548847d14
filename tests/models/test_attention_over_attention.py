"""Tests of qanet.models.attention_over_attention; what all models promise is tested in
test_contract."""

from made_models import SIZES, lstm_numbers, trained_numbers

from qanet.models.attention_over_attention import (
    AoAConfig,
    ClozeConfig,
    build_aoa,
    build_cloze,
)

SETTINGS = {"units": 7, "width": 10, "character_width": 0}

# The unknown word's vector, the projection, and the highway network.
WORD = SIZES.width + SIZES.width * 10 + 2 * 2 * (10 * 10 + 10)


def lstm(width):
    return lstm_numbers(width, 7)


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
