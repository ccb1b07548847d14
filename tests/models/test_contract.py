"""What every model of the registry promises; see `qanet.models.registry.Model`.

What a model computes is tested in its own file.
"""

from dataclasses import replace

import keras
import numpy as np
import pytest
from keras import ops
from made_models import (
    PIECE_SIZES,
    SIZES,
    batch,
    length_of,
    logits,
    made_examples,
    made_pieces,
    products_of,
    real_context,
    sizes_of,
    with_sizes,
)
from made_training import train_on

from qanet.config import Config, TrainingConfig
from qanet.layers.dropout import Dropout
from qanet.layers.numerics import MASKED_LOGIT
from qanet.models.registry import (
    MODELS,
    build_model,
    forward_flops,
    with_attention,
)
from qanet.models.words import above_words, word_embedding, word_side
from qanet.training.trainer import reading_learner

pytestmark = pytest.mark.usefixtures("fixed_seed")


# Every part of each model, of small sizes.
SMALL = {
    "qanet": {
        "width": 8,
        "heads": 2,
        "feed_forward": 5,
        "embedding_encoder": {"blocks": 1, "convolutions": 1, "kernel_size": 3},
        "model_encoder": {"blocks": 1, "convolutions": 0, "kernel_size": 3},
    },
    "bidaf": {"width": 8, "units": 5},
    "slqa": {"width": 8, "units": 5},
    "aoa": {"width": 8, "units": 5},
    "aoa-cloze": {"width": 8, "units": 5},
    "bert": {
        "width": 8,
        "blocks": 2,
        "heads": 2,
        "feed_forward": 5,
        "attention_over_attention": True,
    },
}
# Those that answer with one word.
CLOZE = {"aoa-cloze"}
# Those that read both texts in one sequence.
JOINED = {"bert"}
WORDS = {
    "character_width": 4,
    "character_filters": 5,
    "character_kernel": 3,
    "highway_layers": 1,
    "question_match": True,
}
# Settings that readers of word pieces do not have.
OF_WORDS = {*WORDS, "word_dropout", "character_dropout"}


@pytest.fixture(scope="module", params=MODELS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def settings(name):
    """Makes the settings of a small model, with changes."""
    entry = MODELS[name]

    def make(**changes):
        if entry.text == "words":
            changes = WORDS | changes
        else:
            changes = {k: v for k, v in changes.items() if k not in OF_WORDS}
        return entry.settings.model_validate(SMALL[name] | changes)

    return make


@pytest.fixture(scope="module")
def sizes(name):
    """The sizes of its tokens."""
    return sizes_of(name)


@pytest.fixture(scope="module")
def built(settings, sizes):
    """The small model, and the values that its variables begin with."""
    keras.utils.set_random_seed(7)
    model = build_model(settings(), sizes)
    # Or Keras computes it once more before its first prediction on JAX.
    assert [layer.path for layer in model._flatten_layers() if not layer.built] == []
    return model, [ops.convert_to_numpy(variable) for variable in model.variables]


@pytest.fixture
def model(built):
    """The small model as it begins, made once for all tests."""
    model, values = built
    for variable, value in zip(model.variables, values, strict=True):
        variable.assign(value)
    return model


@pytest.fixture
def examples(rng, sizes):
    return made_pieces(rng) if sizes is PIECE_SIZES else made_examples(rng)


def test_inputs_and_outputs(sizes, model, examples):
    shapes = {
        f"{text}_{column}": (None, None, *shape)
        for text in ("context", "question")
        for column, shape in sizes.columns.items()
    }
    assert {name: tensor.shape for name, tensor in model.input.items()} == shapes
    assert model.output.keys() == {"start_logits", "end_logits"}
    output = logits(model, batch(examples))
    assert output.shape == (2, 3, 6)
    assert output.dtype == "float32"


def test_no_answer_is_one_logit_more(settings, sizes, model, examples, randomise):
    with_none = build_model(settings(), sizes, no_answer=True)
    weights = randomise(with_none)
    for weight in model.weights:
        weight.assign(weights[weight.path].astype("float32"))
    inputs = batch(examples)
    found, expected = logits(with_none, inputs), logits(model, inputs)
    np.testing.assert_allclose(found[:, :, 1:], expected, atol=1e-6)
    assert (found[:, :, 0] > MASKED_LOGIT / 2).all()
    if not MODELS[model.name].none_first:
        none = weights["no_answer/logit"][0]
        np.testing.assert_allclose(found[:, :, 0], none, rtol=1e-6)


def test_padding_leaks_nowhere(model, examples, randomise, compiled):
    """An example alone, padded longer, or beside others gives the same logits."""
    randomise(model, bound=0.6)
    mixed = logits(model, batch(examples))
    model = compiled(model)
    longer = logits(model, batch(examples, 11, 8))

    np.testing.assert_allclose(longer[:, :, :6], mixed, atol=1e-5)
    # Its context is one token; example 1 fills the mixed batch.
    n, m = length_of(examples[2], "context"), length_of(examples[2], "question")
    alone = logits(model, batch([examples[2]], n, m))[:, 0]
    np.testing.assert_allclose(mixed[:, 2, :n], alone, atol=1e-5)
    for output, n in ((mixed, 6), (longer, 11)):
        lengths = np.array([length_of(example, "context") for example in examples])
        padding = np.arange(n) >= lengths[:, None]
        # Below any real logit by more than a softmax in float32 can see.
        assert np.all(output[:, padding] == MASKED_LOGIT)
        assert np.all(output[:, ~padding] > MASKED_LOGIT / 2)


def test_inference_is_deterministic_and_training_random(model, examples):
    inputs = batch(examples)

    first, second = (logits(model, inputs) for _ in range(2))
    third, fourth = (logits(model, inputs, training=True) for _ in range(2))

    np.testing.assert_array_equal(first, second)
    assert np.any(third != fourth)
    assert np.any(third != first)


def test_first_weights_and_noise_follow_from_the_seed(settings, sizes, examples):
    untrained = with_sizes(pretrained=False) if sizes is SIZES else sizes

    def made(seed):
        keras.utils.set_random_seed(seed)
        model = build_model(settings(), untrained)
        weights = {w.path: ops.convert_to_numpy(w) for w in model.trainable_variables}
        return weights, logits(model, batch(examples), training=True)

    (first, noise), (again, same_noise), (other, _) = (made(seed) for seed in (1, 1, 2))
    for path, value in first.items():
        np.testing.assert_array_equal(value, again[path], err_msg=path)
        if np.ptp(value) and not path.endswith("/bias"):
            assert not np.array_equal(value, other[path]), path
    np.testing.assert_array_equal(noise, same_noise)


def test_every_trained_weight_receives_a_gradient(
    model, examples, gradients, call_with
):
    inputs = {
        name: ops.convert_to_tensor(array) for name, array in batch(examples).items()
    }
    real = real_context(batch(examples))

    def loss(*values):
        output = call_with(model, values, inputs)
        total = ops.square(output["start_logits"]) + ops.square(output["end_logits"])
        return ops.sum(ops.where(real, total, 0.0))

    values = [ops.convert_to_numpy(w) for w in model.trainable_variables]
    computed = gradients(loss, *values)

    for weight, gradient in zip(model.trainable_variables, computed, strict=True):
        assert np.all(np.isfinite(gradient)), weight.path
        assert np.any(gradient != 0.0), weight.path


def test_an_empty_example_gives_finite_logits(model, examples):
    inputs = batch(examples)
    for array in inputs.values():
        array[1] = 0

    assert np.all(np.isfinite(logits(model, inputs)))


def test_mixed_bfloat16_gives_float32_logits(
    settings, sizes, model, mixed_bfloat16, examples, randomise, compiled
):
    rough = build_model(settings(), sizes, no_answer=True)
    assert {tensor.dtype for tensor in rough.output.values()} == {"float32"}
    weights = randomise(rough, bound=0.3)
    keras.config.set_dtype_policy("float32")
    for weight in model.weights:
        weight.assign(weights[weight.path].astype("float32"))
    inputs = batch(examples)
    real = real_context(inputs)

    found, expected = logits(compiled(rough), inputs), logits(model, inputs)

    assert found.dtype == "float32"
    found = found[:, :, 1:]
    np.testing.assert_allclose(found[:, real], expected[:, real], atol=0.1)
    assert np.any(found != expected)


def test_a_stored_model_gives_the_same_logits(model, examples, randomise, tmp_path):
    randomise(model)

    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")

    inputs = batch(examples)
    np.testing.assert_array_equal(logits(again, inputs), logits(model, inputs))


@pytest.mark.parametrize("changes", [{}, {"highway_before_projection": False}])
def test_what_a_word_decides_alone_may_be_computed_before(
    settings, sizes, model, examples, randomise, changes
):
    """An export keeps a row for each word and goes on from there."""
    if sizes is not SIZES:
        pytest.skip("reads no words")
    if changes:
        model = build_model(settings(**changes), sizes)
    randomise(model)
    inputs = batch(examples)
    side, above = word_side(model), above_words(model)
    folded = word_embedding(model).fold()
    given = {}
    for text in ("context", "question"):
        words, characters = inputs[f"{text}_words"], inputs[f"{text}_characters"]
        given[f"{text}_words"] = ops.convert_to_tensor(words)
        given[f"{text}_characters"] = ops.convert_to_tensor(characters)
        numbers = {"folded": folded[words], "words": words, "characters": characters}
        for name, column in side(numbers).items():
            given[f"{text}_{name}"] = column
    np.testing.assert_allclose(logits(above, given), logits(model, inputs), atol=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="is for TensorFlow")
def test_a_graph_of_unknown_lengths_computes_the_same_with_fresh_noise(model, examples):
    import tensorflow as tf

    inputs = batch(examples)
    free = {
        name: tf.TensorSpec([None, None, *array.shape[2:]], tf.int32)
        for name, array in inputs.items()
    }

    @tf.function(input_signature=[free])
    def infer(inputs):
        return model(inputs, training=False)

    @tf.function(input_signature=[free])
    def train(inputs):
        return model(inputs, training=True)

    np.testing.assert_allclose(logits(infer, inputs), logits(model, inputs), atol=1e-5)
    assert logits(infer, batch(examples, 11, 8)).shape == (2, 3, 11)
    assert np.any(logits(train, inputs) != logits(train, inputs))


def test_attention_of_the_context_is_told_where_it_is_offered(
    settings, model, examples
):
    config = settings()
    model = with_attention(model, config)
    found = ops.convert_to_numpy(model(batch(examples))["attention"])
    assert found.shape == (3, 6, 5)
    if config.name in JOINED:
        # The rest goes to the context itself.
        assert (found.sum(axis=2) < 1).all()
        assert (found.sum(axis=2) > 0).all()
    else:
        np.testing.assert_allclose(found.sum(axis=2), 1, atol=1e-5)


# Layers of the model itself, and how often they are used.
DROPOUTS = {
    "qanet": {"attended": 1, "pass": 3},
    "bidaf": {
        "contextual": 2,
        "modelling_0": 1,
        "modelling_1": 1,
        "end": 1,
        "output": 3,
    },
    "slqa": {
        "encoder": 2,
        "fused_context": 1,
        "context": 1,
        "question": 1,
        "output": 1,
    },
    "aoa": {"encoder": 2, "start": 1, "end": 1, "output": 3},
    "aoa-cloze": {"context": 1, "question": 1},
    "bert": {},
}


def test_dropout_between_the_layers(settings, sizes):
    config = settings(dropout=0.3)
    model = build_model(config, sizes)
    found = [layer for layer in model.layers if isinstance(layer, Dropout)]
    uses = {
        layer.name.removesuffix("_dropout"): len(layer._inbound_nodes)
        for layer in found
    }
    assert uses == DROPOUTS[config.name]
    assert {layer.rate for layer in found} <= {0.3}


def test_one_batch_is_learned_by_heart(settings, sizes, examples):
    """By a compiled step, as it is trained."""
    config = settings(dropout=0.0, word_dropout=0.0, character_dropout=0.0)
    training = TrainingConfig(learning_rate=0.02, warmup_steps=5, decay="constant")
    whole = Config(training=training)
    learner = reading_learner(build_model(config, sizes), whole, taught=False)
    starts = [1, 4, 0]
    ends = starts if config.name in CLOZE else [2, 5, 0]
    targets = {
        "start_logits": np.eye(6, dtype="float32")[starts],
        "end_logits": np.eye(6, dtype="float32")[ends],
    }
    losses = [loss for loss, _ in train_on(learner, [(batch(examples), targets)] * 120)]
    assert losses[0] > 1.0
    assert losses[-1] < 0.1


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="reads JAX' programs")
def test_flops_are_those_of_the_model_s_products(settings, sizes, examples):
    """But for QANet's, whose own test says what is counted otherwise."""
    import jax

    config = settings(character_filters=0)
    model = build_model(config, sizes)

    def forward(inputs):
        with keras.StatelessScope():
            return model(inputs, training=False)

    program = jax.make_jaxpr(forward)(batch(examples, 13, 7))
    products = products_of(program.jaxpr)
    counted = len(examples) * forward_flops(config, sizes, 13, 7)
    tolerance = 0.02 if config.name == "qanet" else 0.0
    assert counted == pytest.approx(products, rel=tolerance, abs=0)


def test_a_model_that_tells_no_attention_is_returned_as_it_is(monkeypatch):
    silent = replace(MODELS["qanet"], attention=None)
    monkeypatch.setitem(MODELS, "qanet", silent)
    model = object()
    assert with_attention(model, silent.settings()) is model
