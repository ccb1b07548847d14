"""Tests of qanet.training.learner against NumPy loops, on either backend."""

import keras
import numpy as np
import pytest
from keras import ops
from made_training import batches, small_learner, small_model, take_steps


def averages_of(learner):
    with learner.averaged_weights():
        return learner.model.get_weights()


def gradient_of(learner, x, y):
    """That of the mean squared error, kernel first."""
    kernel, bias = learner.model.get_weights()
    error = 2 * (x @ kernel + bias - y) / y.size
    return [x.T @ error, error.sum(axis=0)]


def test_loss_and_gradient_norm_are_told_of_each_step():
    learner = small_learner(clip_norm=0.01)
    ((x, y),) = batches(1)
    kernel, bias = learner.model.get_weights()
    gradient = np.concatenate([g.ravel() for g in gradient_of(learner, x, y)])

    ((loss, norm),) = take_steps(learner, [(x, y)])

    assert loss == pytest.approx(np.square(x @ kernel + bias - y).mean(), rel=1e-5)
    # Before clipping.
    assert norm == pytest.approx(np.linalg.norm(gradient), rel=1e-5)
    assert norm > 0.01


def test_gradient_is_clipped_by_its_global_norm():
    # With such an epsilon the first update is rate * gradient / epsilon.
    settings = {"beta_2": 0.0, "epsilon": 1e4, "learning_rate": 1e4}
    ((x, y),) = batches(1)
    for bound in (1e9, 0.01):
        learner = small_learner(clip_norm=bound, **settings)
        before = learner.model.get_weights()
        gradient = np.concatenate([g.ravel() for g in gradient_of(learner, x, y)])
        norm = np.linalg.norm(gradient)
        assert norm > 0.1

        take_steps(learner, [(x, y)])

        pairs = zip(before, learner.model.get_weights(), strict=True)
        update = np.concatenate([(old - new).ravel() for old, new in pairs])
        expected = gradient * min(1.0, bound / norm)
        np.testing.assert_allclose(update, expected, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("bound", [0.25, 0.9999])
def test_averages_follow_the_loop_with_the_rising_decay(bound):
    learner = small_learner(ema_decay=bound)
    expected = None
    for t, batch in enumerate(batches(8)):
        take_steps(learner, [batch])
        raw = learner.model.get_weights()
        # The first step's weights begin them, not the random ones before.
        expected = expected or raw
        decay = min(bound, (1 + t) / (10 + t))
        expected = [
            decay * average + (1 - decay) * weight
            for average, weight in zip(expected, raw, strict=True)
        ]
        for actual, wanted in zip(averages_of(learner), expected, strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-6)


def test_averaged_weights_are_put_in_place_and_taken_away_again():
    learner = small_learner()
    take_steps(learner, batches(3))
    raw = learner.model.get_weights()
    with learner.averaged_weights():
        inside = learner.model.get_weights()
        x = batches(1)[0][0].astype("float32")
        kernel, bias = inside
        outputs = learner.model.predict_on_batch({"x": x})
        np.testing.assert_allclose(outputs["y"], x @ kernel + bias, rtol=1e-4)
    assert not np.allclose(inside[0], raw[0])
    for before, after in zip(raw, learner.model.get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)


def test_weights_come_back_after_an_exception():
    learner = small_learner()
    take_steps(learner, batches(3))
    raw = learner.model.get_weights()
    with pytest.raises(RuntimeError, match="stop"), learner.averaged_weights():
        raise RuntimeError("stop")
    for before, after in zip(raw, learner.model.get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)


def test_training_goes_on_as_if_the_averages_had_never_been_looked_at():
    looked, alone = small_learner(), small_learner()
    for batch in batches(4):
        take_steps(looked, [batch])
        averages_of(looked)
        take_steps(alone, [batch])
    pairs = zip(looked.model.get_weights(), alone.model.get_weights(), strict=True)
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)


def test_penalty_is_of_matrices_alone():
    model = small_model()
    x = keras.layers.LayerNormalization()(model.output["y"])
    model = keras.Model(model.input, {"y": x})
    kernel = np.arange(6.0).reshape(3, 2)
    vectors = [np.array(vector) for vector in ([5.0, -7.0], [11.0, 13.0], [17.0, 19.0])]
    model.set_weights([kernel, *vectors])
    learner = small_learner(model, l2=0.1)
    values = [ops.convert_to_tensor(v) for v in model.trainable_variables]
    # 0.1 / 2 * (0 + 1 + 4 + 9 + 16 + 25)
    assert float(learner.penalty(values)) == pytest.approx(2.75)


@pytest.mark.parametrize("name", ["bias", "sentinels"])
def test_vectors_that_are_stored_together_are_no_matrix(name):
    """As the biases of ELMo's LSTMs, a row for each direction, and DCN's sentinels."""

    class Shifted(keras.layers.Layer):
        def build(self, input_shape):
            self.bias = self.add_weight(name=name, shape=(2, 3))

        def call(self, x):
            return x + ops.sum(self.bias, axis=0)

    x = keras.Input((3,), name="x")
    learner = small_learner(
        keras.Model({"x": x}, {"y": Shifted()(x)}),
        lambda targets, outputs: 0.0 * ops.sum(outputs["y"]),
        l2=0.1,
        optimizer="adamw",
        weight_decay=0.5,
    )
    bias = np.arange(6.0).reshape(2, 3)
    learner.model.set_weights([bias])
    ((loss, _),) = take_steps(learner, [(np.ones((4, 3)), np.ones((4, 3)))])
    assert loss == 0
    np.testing.assert_array_equal(learner.model.get_weights()[0], bias)


def test_penalty_is_part_of_the_loss_and_of_the_gradient():
    # With such an epsilon the first update is rate * gradient / epsilon.
    settings = {"beta_2": 0.0, "epsilon": 1e4, "learning_rate": 1e4}

    def nothing(targets, outputs):
        return 0.0 * ops.sum(outputs["y"])

    learner = small_learner(loss=nothing, l2=0.3, **settings)
    kernel, bias = np.arange(6.0).reshape(3, 2) - 2, np.array([5.0, -7.0])
    learner.model.set_weights([kernel, bias])

    ((loss, _),) = take_steps(learner, batches(1))

    assert loss == pytest.approx(0.3 / 2 * np.square(kernel).sum(), rel=1e-5)
    found = learner.model.get_weights()
    np.testing.assert_allclose(found[0], 0.7 * kernel, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(found[1], bias)


def test_state_holds_all_that_training_changes_and_no_frozen_weight():
    x = keras.Input((3,), name="x")
    y = keras.layers.Dense(2, trainable=False)(x)
    y = keras.layers.Dropout(0.5)(keras.layers.Dense(2)(y))
    learner = small_learner(keras.Model({"x": x}, {"y": y}))
    frozen = {id(v) for v in learner.model.non_trainable_weights}
    assert len(frozen) == 2
    before = {k: ops.convert_to_numpy(v) for k, v in learner.state.items()}
    assert not frozen & {id(v) for v in learner.state.values()}

    take_steps(learner, batches(1))

    after = {k: ops.convert_to_numpy(v) for k, v in learner.state.items()}
    unchanged = {k for k in after if np.array_equal(before[k], after[k])}
    # A constant rate is stored too.
    assert all("learning_rate" in name for name in unchanged), unchanged
    assert {name.split("/")[0] for name in after} == {"model", "optimizer", "averages"}
