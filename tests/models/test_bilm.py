"""Tests of qanet.models.bilm; its vectors are tested in `test_elmo_weights.py`."""

import math

import h5py
import keras
import numpy as np
import pytest
from keras import ops
from made_bilm import layers_with_marks, random_arrays, small_config

from qanet.errors import UserError
from qanet.layers.dropout import Dropout
from qanet.learning_config import DistributionConfig, LearningConfig
from qanet.models.bilm import BiLMConfig, build_bilm, build_language_model
from qanet.models.character_ids import character_ids
from qanet.models.elmo_weights import read_weights
from qanet.pretraining.bilm_batches import SentenceBatches
from qanet.pretraining.config import BiLMLearningConfig
from qanet.pretraining.word_vocabulary import WordVocabulary
from qanet.settings import configure
from qanet.training.bilm_pretrainer import perplexity, sum_of_predictions
from qanet.training.distribution import make_distribution
from qanet.training.learner import Learner

pytestmark = pytest.mark.usefixtures("fixed_seed")

SENTENCES = [["the", "cat", "sat", "on", "the", "mat"], ["dogs", "sat"], ["the"]]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("units=128", "units=128 must be more than projection=128"),
        ("filters=[[1,128]]", "all filters=128 must be more than projection=128"),
        ("filters=[[51,900]]", "filters.0.0=51"),
        ("layers=0", "layers=0"),
        ("cell_clip=0", "cell_clip=0"),
    ],
)
def test_impossible_settings(setting, message):
    with pytest.raises(UserError, match=message):
        configure(BiLMConfig, {}, [setting], "test")


def characters_of(sentences, length):
    characters = np.zeros((len(sentences), length, 50), "int32")
    for row, sentence in zip(characters, sentences, strict=True):
        row[: len(sentence)] = character_ids(sentence)
    return characters


def test_each_direction_has_read_its_side_alone(compiled):
    model = compiled(build_bilm(small_config()))
    (sentence, *_) = SENTENCES
    other = [*sentence[:3], "off", *sentence[4:]]
    one, two = ops.convert_to_numpy(model(characters_of([sentence, other], 6)))
    changed = (one != two).any(axis=2)
    words = one.shape[-1] // 2
    assert changed[:, 0].tolist() == [False, False, False, True, False, False]
    forward = (one != two)[:, 1:, :words].any(axis=(1, 2))
    backward = (one != two)[:, 1:, words:].any(axis=(1, 2))
    assert forward.tolist() == [False, False, False, True, True, True]
    assert backward.tolist() == [True, True, True, True, False, False]


VOCABULARY = WordVocabulary.count(SENTENCES, 8)


def made_batches():
    config = BiLMLearningConfig(buckets=(7,), batch_tokens=21, samples=8, seed=0)
    return SentenceBatches(SENTENCES, VOCABULARY, config)


@pytest.fixture
def batches():
    return made_batches()


def losses_of(model, batches, **arguments):
    """What each real prediction of the only batch costs, of each sentence."""
    (batch,) = batches.reading()
    outputs = model(batches.inputs(batch), **arguments)
    real = batches.targets(batch)["real"] > 0
    pairs = (
        [ops.convert_to_numpy(outputs[name])[row][real[row]] for row in range(3)]
        for name in ("next", "previous")
    )
    return list(zip(*pairs, strict=True))


def test_losses_are_those_of_the_paper_in_numpy(batches, rng, tmp_path, compiled):
    arrays = random_arrays(rng)
    with h5py.File(tmp_path / "weights.hdf5", "w") as file:
        for name, array in arrays.items():
            file[name] = array
    model = build_language_model(small_config(), len(VOCABULARY))
    read_weights(model, tmp_path)
    softmax = model.get_layer("softmax")
    softmax.bias.assign(rng.normal(size=8))
    kernel, bias = np.array(softmax.kernel), np.array(softmax.bias)
    model = compiled(model)
    total = count = 0
    for losses, sentence in zip(losses_of(model, batches), SENTENCES, strict=True):
        top = layers_with_marks(sentence, arrays)[:, -1]
        words = VOCABULARY.numbers(["<S>", *sentence, "</S>"])
        for found, states, right in (
            (losses[0], top[:-1, :4], words[1:]),
            (losses[1], top[1:, 4:], words[:-1]),
        ):
            logits = states @ kernel.T + bias
            p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            expected = -np.log(p[np.arange(len(right)), right])
            np.testing.assert_allclose(found, expected, rtol=1e-4)
            total, count = total + expected.sum(), count + len(expected)
    measured = perplexity(model, batches)
    assert measured == pytest.approx(math.exp(total / count), rel=1e-4)


def test_a_word_is_predicted_without_having_been_read(batches, compiled):
    """Other characters in the place of a word change no prediction of this word."""
    model = compiled(build_language_model(small_config(), len(VOCABULARY)))
    other = made_batches()
    place = 2
    cut = other._sentences[0].copy()
    cut[place] = other._sentences[1][0]
    other._sentences[0] = cut
    # The words that are to be predicted stay what they are.
    made = other.inputs

    def inputs(batch):
        return made(batch) | {"words": batches.inputs(batch)["words"]}

    other.inputs = inputs
    one, two = losses_of(model, batches)[0], losses_of(model, other)[0]
    changed = [(a != b).tolist() for a, b in zip(one, two, strict=True)]
    # From the word's own place on to the right, with the mark before it counted.
    assert changed[0] == [False] * (place + 1) + [True] * 4
    # From its own place on to the left.
    assert changed[1] == [True] * (place + 1) + [False] * 4


def test_training_takes_the_sample(batches, compiled):
    model = build_language_model(small_config(dropout=0.0), len(VOCABULARY))
    model = compiled(model)
    # Of 8 words, 6 can be shared by 3 sentences.
    whole, sampled = (losses_of(model, batches, training=t) for t in (False, True))
    for one, other in zip(whole, sampled, strict=True):
        assert np.abs(np.concatenate(one) - np.concatenate(other)).max() > 0.01


def test_dropout_before_each_layer_and_the_softmax():
    model = build_language_model(small_config(dropout=0.3), len(VOCABULARY))
    found = {
        layer.name: (layer.rate, len(layer._inbound_nodes))
        for layer in model.layers
        if isinstance(layer, Dropout)
    }
    names = "dropout_0", "dropout_1", "softmax_dropout"
    assert found == dict.fromkeys(names, (0.3, 1))


def test_mixed_bfloat16(mixed_bfloat16, batches, compiled):
    model = build_language_model(small_config(), len(VOCABULARY))
    found = losses_of(compiled(model), batches)
    keras.config.set_dtype_policy("float32")
    other = build_language_model(small_config(), len(VOCABULARY))
    other.set_weights(model.get_weights())
    expected = losses_of(compiled(other), batches)
    for one, two in zip(found, expected, strict=True):
        assert one[0].dtype == "float32"
        np.testing.assert_allclose(np.concatenate(one), np.concatenate(two), atol=0.05)


def test_the_sum_of_predictions_leaves_padding_out():
    outputs = {
        "next": np.array([[1.0, 2.0, 64.0]], "float32"),
        "previous": np.array([[4.0, 8.0, 64.0]], "float32"),
    }
    targets = {"real": np.array([[1.0, 1.0, 0.0]], "float32")}
    total, count = sum_of_predictions(targets, outputs)
    assert (float(total), float(count)) == (15.0, 4.0)


def test_a_toy_language_is_learned(compiled):
    """Of any word follows which one stands before and after it."""
    words = "one two three four five six seven eight".split()
    sentences = [
        [words[(begin + i) % 8] for i in range(length)]
        for begin in range(8)
        for length in (3, 4, 6)
    ]
    vocabulary = WordVocabulary.count(sentences, 11)
    training = BiLMLearningConfig(buckets=(6,), batch_tokens=48, samples=8, seed=0)
    batches = SentenceBatches(sentences, vocabulary, training)
    config = small_config(
        layers=1,
        units=24,
        projection=16,
        filters=[[1, 8], [2, 16]],
        cell_clip=3.0,
        projection_clip=3.0,
        dropout=0.0,
    )
    model = build_language_model(config, len(vocabulary))
    learning = LearningConfig(
        steps=300, learning_rate=0.02, warmup_steps=10, l2=0.0, ema_decay=0.0
    )

    def loss(targets, outputs):
        total, count = sum_of_predictions(targets, outputs)
        return total / count

    assert 8 < perplexity(compiled(model), batches) < 16
    distribution = make_distribution(DistributionConfig())
    train = distribution.training(Learner(model, loss, learning), size=None)
    for _ in train(batches, batches.plan(300)):
        pass
    # What cannot be known is with which of 8 words a sentence begins and which of 3
    # lengths it has; there are 4, 5 or 7 predictions in each direction.
    least = (8 * 3) ** (3 / (4 + 5 + 7))
    assert least < perplexity(compiled(model), batches) < 1.1 * least
