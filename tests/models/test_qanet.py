"""Tests of qanet.models.qanet."""

import keras
import numpy as np
import pytest
from made_models import (
    SIZES,
    batch,
    logits,
    logits_of_each,
    made_examples,
    products_of,
    repeat_a_word,
    with_sizes,
)

from qanet.config import load_preset
from qanet.layers.encoder import EncoderStack
from qanet.models.qanet import QANetConfig, build_qanet
from qanet.models.registry import build_model, forward_flops
from qanet.models.words import EmbeddingSizes

pytestmark = pytest.mark.usefixtures("fixed_seed")

TINY = QANetConfig(
    width=8,
    heads=2,
    feed_forward=5,
    embedding_encoder={"blocks": 1, "convolutions": 2, "kernel_size": 5},
    model_encoder={"blocks": 2, "convolutions": 1, "kernel_size": 3},
    character_width=4,
    character_filters=5,
    character_kernel=3,
)


@pytest.fixture
def examples(rng):
    return made_examples(rng)


def tiny(**changes):
    """A configuration like `TINY`."""
    return QANetConfig.model_validate(TINY.model_dump() | changes)


# For what must be compiled.
SHALLOW = tiny(
    embedding_encoder={"blocks": 1, "convolutions": 1, "kernel_size": 3},
    model_encoder={"blocks": 1, "convolutions": 1, "kernel_size": 3},
    highway_layers=1,
)


def numpy_qanet(reference, weights, config, example):
    """The model on one example, from the formulas."""

    def encode(x, name, blocks, convolutions):
        return reference.encoder(
            x,
            reference.below(weights, name),
            blocks,
            convolutions,
            config.heads,
            config.survival,
            config.position_per_block,
            config.final_norm,
            config.residual_scale,
            config.position_scale,
        )

    stack = config.embedding_encoder
    context, question = (
        encode(x, "embedding_encoder", stack.blocks, stack.convolutions)
        for x in reference.embed_words(example, weights, config)
    )
    x = reference.context_query_attention(
        context, question, reference.below(weights, "context_query_attention")
    )
    x = x @ weights["attended/kernel"]
    outputs = []
    for _ in range(config.passes):
        stack = config.model_encoder
        x = encode(x, "model_encoder", stack.blocks, stack.convolutions)
        outputs.append(x)
    pointer = reference.below(weights, "pointer")
    return np.stack(reference.span_pointer(*outputs[-3:], pointer))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"position_per_block": True, "survival": 0.5},
        {"highway_before_projection": False, "character_filters": 0},
        {"passes": 4, "highway_layers": 0},
        {"embedding_norm": False, "residual_scale": 1.0, "position_scale": 1.0},
        {"question_match": True},
    ],
    ids=str,
)
def test_against_numpy(changes, examples, randomise, reference):
    """Also: start logits read passes 0 and 1, end logits 0 and 2, of the last three."""
    config = tiny(**changes)
    model = build_qanet(config, SIZES)
    weights = randomise(model, bound=0.6)
    repeat_a_word(examples[1])

    for example, found in zip(examples, logits_of_each(model, examples), strict=True):
        expected = numpy_qanet(reference, weights, config, example)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def count_parameters(config, sizes):
    """Trained numbers, from the sizes of the paper's matrices and vectors."""
    d = config.width
    spelled = config.character_filters or config.character_width
    joined = sizes.width + spelled

    words = sizes.width + (0 if sizes.pretrained else sizes.rows * sizes.width)
    characters = sizes.characters * config.character_width
    if not config.character_width:
        joined = sizes.width
    elif config.character_filters:
        window = config.character_kernel * config.character_width
        characters += (window + 1) * config.character_filters

    h = joined if config.highway_before_projection else d
    highway = config.highway_layers * 2 * (h * h + h)
    projection = joined * d

    def stack(sizes):
        norm = 2 * d
        kernel = sizes.kernel_size * d + d * d
        if not config.separable:
            kernel = sizes.kernel_size * d * d
        convolution = norm + kernel + d
        attention = norm + 4 * d * d if config.heads else 0
        inner = config.feed_forward
        feed_forward = norm + d * inner + inner + inner * d + d
        block = sizes.convolutions * convolution + attention + feed_forward
        return sizes.blocks * block + (norm if config.final_norm else 0)

    encoders = stack(config.embedding_encoder) + stack(config.model_encoder)
    attention, attended = {
        "both_ways": (3 * d, 4 * d * d),
        "context_to_query": (3 * d, 3 * d * d),
        "dcn": (d * d + d + 2 * d, 3 * d * d),
    }[config.attention]
    pointer = 2 * 2 * d
    lower = words + characters + highway + projection
    lower += 2 * d if config.embedding_norm else 0
    lower += 4 * d if config.question_match else 0
    return lower + encoders + attention + attended + pointer


@pytest.mark.parametrize(
    ("changes", "pretrained"),
    [
        ({}, True),
        ({}, False),
        ({"width": 6, "heads": 3, "feed_forward": 11, "passes": 5}, True),
        ({"character_filters": 0, "highway_layers": 1, "final_norm": False}, False),
        ({"highway_before_projection": False, "position_per_block": True}, True),
        ({"model_encoder": {"blocks": 3, "convolutions": 0, "kernel_size": 4}}, True),
        ({"question_match": True}, True),
        ({"attention": "context_to_query"}, True),
        ({"attention": "dcn"}, True),
        ({"heads": 0}, True),
        ({"separable": False}, True),
        ({"character_width": 0}, True),
    ],
    ids=str,
)
def test_parameter_count(changes, pretrained):
    config, sizes = tiny(**changes), with_sizes(pretrained=pretrained)

    model = build_qanet(config, sizes)

    counted = sum(int(np.prod(w.shape)) for w in model.trainable_variables)
    assert counted == count_parameters(config, sizes)
    frozen = sum(int(np.prod(w.shape)) for w in model.non_trainable_weights)
    assert frozen == (sizes.rows * sizes.width if pretrained else 0)


def test_parameter_count_of_the_paper():
    config = load_preset("qanet-paper").model
    sizes = EmbeddingSizes(
        rows=50, width=300, characters=100, characters_per_word=16, pretrained=True
    )

    model = build_model(config, sizes)

    counted = sum(int(np.prod(w.shape)) for w in model.trainable_variables)
    # 300 unknown word, 100 * 200 characters, 2 * 2 * (500 * 500 + 500) highway,
    # 500 * 128 projection, 169 728 embedding encoder, 7 * 133 888 model encoder,
    # 3 * 128 similarity, 512 * 128 to the model encoder, 2 * 256 pointer.
    assert counted == count_parameters(config, sizes) == 2_259_676


def test_context_and_question_share_one_encoder_and_all_passes_another():
    three, five = (build_qanet(tiny(passes=passes), SIZES) for passes in (3, 5))

    for model in (three, five):
        stacks = [layer for layer in model.layers if isinstance(layer, EncoderStack)]
        assert len(stacks) == 2
    paths = [[weight.path for weight in model.weights] for model in (three, five)]
    assert paths[0] == paths[1]
    assert len(set(paths[0])) == len(paths[0])


QUIET = {"word_dropout": 0.0, "character_dropout": 0.0, "dropout": 0.0, "survival": 1.0}


def test_training_without_any_rate_is_inference(examples):
    model = build_qanet(tiny(**QUIET), SIZES)
    inputs = batch(examples)

    np.testing.assert_array_equal(
        logits(model, inputs, training=True), logits(model, inputs)
    )


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="reads JAX' programs")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"highway_before_projection": False, "passes": 4, "feed_forward": 11},
        {"width": 12, "heads": 3, "highway_layers": 1},
        {"attention": "context_to_query"},
        {"attention": "dcn"},
        {"heads": 0},
        {"separable": False},
        {"character_width": 0},
        {"model_encoder": {"blocks": 3, "convolutions": 2, "kernel_size": 4}},
    ],
    ids=str,
)
def test_flops_are_those_of_the_model_s_products(changes, examples):
    import jax

    config = tiny(character_filters=0, **changes)
    model = build_qanet(config, SIZES)

    def forward(inputs):
        with keras.StatelessScope():
            return model(inputs, training=False)

    program = jax.make_jaxpr(forward)(batch(examples, 13, 7))

    # A depthwise convolution is no product to JAX: kernel_size multiply-adds for each
    # of the numbers it makes.
    one, other = config.embedding_encoder, config.model_encoder
    depthwise = one.blocks * one.convolutions * one.kernel_size * (13 + 7)
    inner = other.blocks * other.convolutions * other.kernel_size
    depthwise += config.passes * inner * 13
    if not config.separable:
        depthwise = 0
    expected = products_of(program.jaxpr) + 3 * 2 * depthwise * config.width
    assert 3 * forward_flops(config, SIZES, 13, 7) == expected


def test_training_in_mixed_bfloat16_is_finite(mixed_bfloat16, examples, randomise):
    model = build_qanet(SHALLOW, SIZES)
    randomise(model, bound=0.4)
    assert np.all(np.isfinite(logits(model, batch(examples), training=True)))
