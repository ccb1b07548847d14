"""Tests of qanet.models.words: contextual vectors in every reader of words."""

import numpy as np
import pytest
from made_models import SIZES, batch, logits, made_examples, with_sizes
from pydantic import ValidationError

from qanet.config import VocabularyConfig
from qanet.models.registry import MODELS, build_model, forward_flops
from qanet.models.words import contextual_mix, word_sizes
from qanet.text.vocabulary import RESERVED, Vocabulary

LAYERS, WIDTH = 2, 5
SMALL = {"width": 8, "character_width": 4, "character_filters": 5}


@pytest.fixture(params=[name for name in MODELS if MODELS[name].text == "words"])
def settings(request):
    more = {"heads": 2} if request.param == "qanet" else {"units": 5}
    return MODELS[request.param].settings.model_validate(SMALL | more)


@pytest.fixture
def inputs(rng):
    """A batch with padding, and vectors everywhere."""
    some = batch(made_examples(rng))
    for text, length in (("context", 6), ("question", 5)):
        vectors = rng.normal(size=(3, length, LAYERS, WIDTH)).astype("float16")
        some[f"{text}_contextual"] = vectors
    return some


def test_contextual_vectors_are_read_where_words_are(settings, inputs, randomise):
    sizes = with_sizes(contextual=(LAYERS, WIDTH))
    model = build_model(settings, sizes)
    randomise(model)
    before = logits(model, inputs)
    for text in ("context", "question"):
        padding = inputs[f"{text}_words"] == 0
        # Padding's are not seen; a word's are.
        changed = inputs[f"{text}_contextual"].copy()
        changed[padding] = 7.0
        same = logits(model, inputs | {f"{text}_contextual": changed})
        np.testing.assert_allclose(same, before, atol=1e-5)
        changed[:, 0] += 1.0
        assert not np.allclose(
            logits(model, inputs | {f"{text}_contextual": changed}), before, atol=1e-4
        )


def test_contextual_vectors_are_added_to_those_of_the_words(
    settings, inputs, randomise
):
    model = build_model(settings, with_sizes(contextual=(LAYERS, WIDTH)))
    without = build_model(settings, SIZES)
    randomise(model)
    shared = {variable.path: variable for variable in without.weights}
    for variable in model.weights:
        if variable.path in shared:
            shared.pop(variable.path).assign(variable)
        else:
            # Of the language model's part, which then adds nothing.
            variable.assign(0.0 * variable)
    assert not shared
    only_words = {name: x for name, x in inputs.items() if "contextual" not in name}
    np.testing.assert_allclose(
        logits(model, inputs), logits(without, only_words), atol=1e-5
    )


def test_each_rate_reaches_its_dropout(settings):
    rates = {"word_dropout": 0.1, "character_dropout": 0.2, "dropout": 0.3}
    sizes = with_sizes(contextual=(LAYERS, WIDTH))
    model = build_model(settings.model_copy(update=rates), sizes)
    embedding = model.get_layer("embedding")
    assert embedding.word_dropout.rate == 0.1
    assert embedding.character_dropout.rate == 0.2
    assert embedding.highway.dropout == 0.3
    assert model.get_layer("language_model_dropout").rate == 0.3


def test_a_vocabulary_tells_which_words_are_one_without_their_case():
    words = [*RESERVED, "Rome", "rome"]
    vocabulary = Vocabulary(words, [*RESERVED, "R", "r"], 4)
    sizes = word_sizes(vocabulary, VocabularyConfig())
    assert sizes.lowercase == vocabulary.lowercase != ()


def test_slqa_reads_nothing_again_without_a_language_model():
    settings = MODELS["slqa"].settings
    with pytest.raises(ValidationError, match="needs contextual, a directory"):
        settings.model_validate({"contextual_output": True})
    settings.model_validate({"contextual_output": True, "contextual": "elmo"})


def test_slqa_may_read_them_again_at_its_encoders_output(inputs, rng):
    config = MODELS["slqa"].settings.model_validate(SMALL | {"units": 5})
    again = config.model_copy(update={"contextual_output": True})
    sizes = with_sizes(contextual=(LAYERS, WIDTH))
    model = build_model(again, sizes)
    names = [layer.name for layer in model.layers]
    assert "language_model_output_mix" in names
    assert logits(model, inputs).shape == (2, 3, 6)
    more = forward_flops(again, sizes, 6, 5) - forward_flops(config, sizes, 6, 5)
    assert more > 0
    # Without vectors there is nothing to be read again.
    assert build_model(again, SIZES).count_params() == (
        build_model(config, SIZES).count_params()
    )


def test_the_mix_against_numpy(settings, rng):
    import keras

    vectors = keras.Input((None, LAYERS, WIDTH), dtype="float16")
    model = keras.Model(vectors, contextual_mix(settings, "m")(vectors))
    scalars, gamma = np.array([0.3, -0.5]), 1.5
    kernel = rng.normal(size=(WIDTH, 8))
    for variable, value in zip(model.weights, (scalars, gamma, kernel), strict=True):
        variable.assign(value)
    x = rng.normal(size=(2, 3, LAYERS, WIDTH)).astype("float16")
    shares = np.exp(scalars) / np.exp(scalars).sum()
    mixed = gamma * np.einsum("btlw,l->btw", x.astype("float64"), shares)
    np.testing.assert_allclose(model(x), mixed @ kernel, atol=1e-2)
