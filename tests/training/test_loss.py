"""Tests of qanet.training.loss."""

import keras
import numpy as np
import pytest
from keras import ops

from qanet.layers.numerics import MASKED_LOGIT
from qanet.training.loss import distillation_loss, smoothed_cross_entropy, span_loss

# Marked tokens; there is padding at the end of the last two.
TOKENS = np.array([1, 0, 3])
TARGET = np.eye(5, dtype="float32")[TOKENS]


@pytest.fixture
def logits(rng):
    x = rng.normal(scale=3.0, size=TARGET.shape).astype("float32")
    x[1:, -1] = MASKED_LOGIT
    return x


def softmax(x):
    powers = np.exp(x.astype("float64") - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def test_against_numpy(logits):
    loss = ops.convert_to_numpy(span_loss(TARGET, logits))

    assert loss.shape == (3,)
    expected = -np.log(softmax(logits)[np.arange(3), TOKENS])
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_it_is_cross_entropy(logits):
    loss = span_loss(TARGET, logits)

    expected = keras.losses.sparse_categorical_crossentropy(
        TOKENS, logits, from_logits=True
    )
    np.testing.assert_allclose(
        ops.convert_to_numpy(loss), ops.convert_to_numpy(expected), rtol=1e-5
    )


def test_gradient_against_numpy(logits, gradients):
    (gradient,) = gradients(lambda x: ops.sum(span_loss(TARGET, x)), logits)

    np.testing.assert_allclose(gradient, softmax(logits) - TARGET, atol=1e-6)


@pytest.mark.parametrize("scale", [0.0, 1e3, -1e3])
def test_loss_and_gradient_are_finite_at_extreme_logits(scale, logits, gradients):
    logits = scale * logits.clip(-9, 9)

    loss = ops.convert_to_numpy(span_loss(TARGET, logits))
    (gradient,) = gradients(lambda x: ops.sum(span_loss(TARGET, x)), logits)

    assert np.all(np.isfinite(loss))
    assert np.all(loss >= 0.0)
    assert np.all(np.isfinite(gradient))
    assert np.any(gradient != 0.0)


def test_half_precision_is_computed_in_single(logits):
    half = ops.cast(logits, "bfloat16")

    loss = span_loss(TARGET, half)

    assert ops.dtype(loss) == "float32"
    single = span_loss(TARGET, ops.cast(half, "float32"))
    np.testing.assert_array_equal(
        ops.convert_to_numpy(loss), ops.convert_to_numpy(single)
    )


def test_compiled_training_goes_down_without_nan():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(5, use_bias=False)])
    model.compile(keras.optimizers.SGD(1.0), span_loss, jit_compile=True)
    target = TARGET[1:2]

    losses = [float(model.train_on_batch(np.ones((1, 1)), target)) for _ in range(80)]

    assert np.all(np.isfinite(losses))
    assert losses[-1] == pytest.approx(0.0, abs=0.05)


# Probabilities of a teacher; of the last example it says nothing.
TAUGHT = np.array([[0.1, 0.4, 0.5, 0, 0], [0.2, 0, 0.8, 0, 0], [0] * 5], "float64")
SHARE, TEMPERATURE = 0.3, 2.0


def teacher():
    with np.errstate(divide="ignore"):
        return np.log(TAUGHT).astype("float32")


def numpy_distillation_loss(logits):
    """(1 - α) -log p + α T² Σ t log(t / q), the last where there is a teacher."""
    marked = -np.log((TARGET * softmax(logits)).sum(axis=1))
    powers = TAUGHT[:2] ** (1 / TEMPERATURE)
    t = powers / powers.sum(axis=1, keepdims=True)
    q = softmax(logits[:2] / TEMPERATURE)
    divergence = [
        sum(t_i * np.log(t_i / q_i) for t_i, q_i in zip(*rows, strict=True) if t_i)
        for rows in zip(t, q, strict=True)
    ]
    taught = (1 - SHARE) * marked[:2] + SHARE * TEMPERATURE**2 * np.array(divergence)
    return np.append(taught, marked[2])


def test_distillation_loss_against_numpy(logits, gradients):
    def total(x):
        return ops.sum(distillation_loss(TARGET, teacher(), x, SHARE, TEMPERATURE))

    loss = distillation_loss(TARGET, teacher(), logits, SHARE, TEMPERATURE)

    np.testing.assert_allclose(
        ops.convert_to_numpy(loss), numpy_distillation_loss(logits), rtol=1e-5
    )
    (gradient,) = gradients(total, logits)
    # Padding, whose logit is far below all others, has no gradient.
    direction = np.random.default_rng(0).normal(size=logits.shape) * (logits > -1e3)
    moved = [
        numpy_distillation_loss(logits.astype("float64") + step * direction).sum()
        for step in (1e-6, -1e-6)
    ]
    np.testing.assert_allclose(
        np.sum(gradient * direction), (moved[0] - moved[1]) / 2e-6, rtol=1e-3
    )
    assert np.all(np.isfinite(gradient))


def test_a_student_that_agrees_with_its_teacher_has_its_own_loss_alone():
    target = np.eye(3, dtype="float32")
    said = np.log(np.full((3, 3), 1 / 3, "float32"))
    for share, expected in ((1.0, 0.0), (0.25, 0.75 * np.log(3))):
        loss = distillation_loss(target, said, np.zeros((3, 3), "float32"), share, 4.0)
        np.testing.assert_allclose(ops.convert_to_numpy(loss), expected, atol=1e-6)


def test_a_teacher_without_a_share_changes_nothing(logits, gradients):
    def taught(x):
        return distillation_loss(TARGET, teacher(), x, 0.0, TEMPERATURE)

    # It says -inf of some tokens of each example, of the last one of all.
    assert np.isneginf(teacher()).any(axis=-1).all()
    loss, alone = taught(logits), span_loss(TARGET, logits)
    np.testing.assert_allclose(
        ops.convert_to_numpy(loss), ops.convert_to_numpy(alone), rtol=1e-6
    )
    (gradient,) = gradients(lambda x: ops.sum(taught(x)), logits)
    np.testing.assert_allclose(gradient, softmax(logits) - TARGET, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_smoothed_cross_entropy_is_that_of_the_formula(rng, smoothing):
    logits = rng.normal(size=(2, 3, 7)).astype("float32")
    target = np.array([[4, 6, 3], [5, 0, 0]], dtype="int32")
    q = np.full((2, 3, 7), smoothing / 7)
    q[np.arange(2)[:, None], np.arange(3), target] += 1 - smoothing
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    expected = -(q * np.log(p)).sum(axis=-1)[target != 0].mean()
    total, count = smoothed_cross_entropy(target, logits, smoothing)
    assert float(count) == 4
    assert float(total) / 4 == pytest.approx(expected, rel=1e-5)
    nothing = smoothed_cross_entropy(np.zeros((2, 3), "int32"), logits, smoothing)
    assert [float(number) for number in nothing] == [0.0, 0.0]
