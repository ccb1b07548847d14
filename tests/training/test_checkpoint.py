"""Tests of qanet.training.checkpoint on a model of a few numbers."""

import errno
import os

import keras
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_training import take_steps

from qanet.config import Config
from qanet.errors import UserError
from qanet.training.checkpoint import (
    Progress,
    restore_checkpoint,
    save_checkpoint,
)
from qanet.training.learner import Learner
from qanet.training.loss import span_loss

ROW = {"step": 2, "loss": 0.1 + 0.2, "f1": 1 / 3}


def small_learner(seed, width=4):
    """A model with weights and dropout, and what trains it."""
    keras.utils.set_random_seed(seed)
    x = keras.Input((3,), name="x")
    y = keras.layers.Dense(width, activation="tanh", name="hidden")(x)
    y = keras.layers.Dropout(0.5)(y)
    model = keras.Model({"x": x}, {"y": keras.layers.Dense(5, name="logits")(y)})

    def loss(targets, outputs):
        return keras.ops.mean(span_loss(targets["y"], outputs["y"]))

    return Learner(model, loss, Config().training)


def train(learner, steps):
    x = np.random.default_rng(0).normal(size=(6, 3))
    take_steps(learner, [(x, np.eye(5)[np.arange(6) % 5])] * steps)


def values(learner):
    return {
        name: keras.ops.convert_to_numpy(variable).copy()
        for name, variable in learner.state.items()
    }


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.fixture(scope="module")
def trained_learner():
    learner = small_learner(1)
    train(learner, 3)
    return learner


@pytest.fixture(scope="module")
def other_learner():
    """A model with the same variables and other values."""
    learner = small_learner(2)
    train(learner, 2)
    return learner


def test_everything_that_training_changes_comes_back(
    trained_learner, other_learner, tmp_path
):
    progress = Progress(7, 12.5, 1 / 3, 2, [ROW, ROW | {"step": 4}])
    save_checkpoint(tmp_path, trained_learner.state, progress)
    saved = values(trained_learner)
    assert restore_checkpoint(tmp_path, other_learner.state) == progress
    assert_same(values(other_learner), saved)


def test_training_goes_on_bit_for_bit(trained_learner, other_learner, tmp_path):
    save_checkpoint(tmp_path, trained_learner.state, Progress(3))
    train(trained_learner, 2)
    uninterrupted = values(trained_learner)
    assert restore_checkpoint(tmp_path, other_learner.state)
    train(other_learner, 2)
    assert_same(values(other_learner), uninterrupted)
    assert restore_checkpoint(tmp_path, trained_learner.state)


def test_resume_of_a_model_that_has_not_taken_a_step(trained_learner, tmp_path):
    """As in a new process: the optimizer's state must be there to be assigned.

    Nor may the names count that Keras numbers through in the order of making.
    """
    save_checkpoint(tmp_path, trained_learner.state, Progress(3))
    model = small_learner(2)
    assert restore_checkpoint(tmp_path, model.state) == Progress(3)
    assert_same(values(model), values(trained_learner))


def test_seeds_are_in_the_checkpoint(trained_learner, other_learner, tmp_path):
    save_checkpoint(tmp_path, trained_learner.state, Progress(3))
    restored, original = [], []
    assert restore_checkpoint(tmp_path, other_learner.state)
    for seeds, of in ((restored, other_learner), (original, trained_learner)):
        seeds += [
            keras.ops.convert_to_numpy(variable)
            for variable in of.model.variables
            if "seed" in variable.path
        ]
    assert original
    assert_same(dict(enumerate(restored)), dict(enumerate(original)))


def test_averages_are_in_the_checkpoint(trained_learner, other_learner, tmp_path):
    save_checkpoint(tmp_path, trained_learner.state, Progress(3))
    with trained_learner.averaged_weights():
        expected = trained_learner.model.get_weights()
    restore_checkpoint(tmp_path, other_learner.state)
    with other_learner.averaged_weights():
        actual = other_learner.model.get_weights()
    assert not np.array_equal(actual[0], other_learner.model.get_weights()[0])
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_nothing_to_restore(trained_learner, tmp_path):
    before = values(trained_learner)
    assert restore_checkpoint(tmp_path / "missing", trained_learner.state) is None
    assert_same(values(trained_learner), before)


def test_only_the_newest_two_are_kept_and_no_temporary_files(trained_learner, tmp_path):
    # Somebody's own copy.
    copy = "step-00000007-best.npz"
    (tmp_path / copy).touch()
    for step in (8, 9, 10, 100):
        save_checkpoint(tmp_path, trained_learner.state, Progress(step))
    own = ["step-00000010.npz", "step-00000100.npz"]
    assert sorted(os.listdir(tmp_path)) == [copy, *own]
    assert restore_checkpoint(tmp_path, trained_learner.state).step == 100


def test_failed_save_leaves_the_old_checkpoints_and_no_temporary_file(
    trained_learner, tmp_path, monkeypatch
):
    save_checkpoint(tmp_path, trained_learner.state, Progress(1))
    save_checkpoint(tmp_path, trained_learner.state, Progress(2))
    whole = np.savez

    def full_disk(file, **arrays):
        whole(file, **arrays)
        file.truncate(100)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(UserError, match="No space"):
        save_checkpoint(tmp_path, trained_learner.state, Progress(3))
    assert sorted(os.listdir(tmp_path)) == ["step-00000001.npz", "step-00000002.npz"]
    assert restore_checkpoint(tmp_path, trained_learner.state).step == 2


@pytest.fixture(scope="module")
def two_checkpoints(trained_learner, tmp_path_factory):
    """A directory with checkpoints of step 1 and 2 that differ, and their values."""
    directory = tmp_path_factory.mktemp("checkpoints")
    save_checkpoint(directory, trained_learner.state, Progress(2))
    second = values(trained_learner)
    train(trained_learner, 1)
    save_checkpoint(directory, trained_learner.state, Progress(1))
    first = values(trained_learner)
    assert any(not np.array_equal(first[name], second[name]) for name in first)
    return directory, {1: first, 2: second}


def damaged_copy(source, target, content):
    target.mkdir(exist_ok=True)
    name = "step-00000001.npz"
    (target / name).write_bytes((source / name).read_bytes())
    (target / "step-00000002.npz").write_bytes(content)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.99, 0.9999])
def test_cut_off_checkpoint_is_recognised_and_the_one_before_used(
    two_checkpoints, other_learner, tmp_path, share
):
    directory, saved = two_checkpoints
    content = (directory / "step-00000002.npz").read_bytes()
    damaged_copy(directory, tmp_path, content[: int(share * len(content))])
    assert restore_checkpoint(tmp_path, other_learner.state) == Progress(1)
    assert_same(values(other_learner), saved[1])


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_flipped_bits_never_stop_the_resumption(
    two_checkpoints, other_learner, tmp_path, data
):
    directory, saved = two_checkpoints
    content = bytearray((directory / "step-00000002.npz").read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    damaged_copy(directory, tmp_path / "copy", bytes(content))
    # Not every bit of a zip file is checked: 2 where the bit says nothing.
    progress = restore_checkpoint(tmp_path / "copy", other_learner.state)
    assert progress in (Progress(1), Progress(2))
    assert_same(values(other_learner), saved[progress.step])


def test_a_checkpoint_that_cannot_be_read_is_not_passed_over(
    two_checkpoints, other_learner, monkeypatch
):
    directory, _ = two_checkpoints

    def refuse(path):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("qanet.training.checkpoint.read_arrays", refuse)
    with pytest.raises(UserError, match=r"step-00000002.npz: cannot be read: Input/"):
        restore_checkpoint(directory, other_learner.state)


def test_pickled_array_is_never_loaded(two_checkpoints, other_learner, tmp_path):
    directory, saved = two_checkpoints
    damaged_copy(directory, tmp_path, b"")
    with np.load(directory / "step-00000002.npz") as file:
        arrays = {name: file[name] for name in file.files}
    name = min(arrays)
    fired = tmp_path / "fired"
    arrays[name] = np.array([Bomb(fired)], dtype=object)
    np.savez(tmp_path / "step-00000002.npz", **arrays)
    assert restore_checkpoint(tmp_path, other_learner.state) == Progress(1)
    assert_same(values(other_learner), saved[1])
    assert not fired.exists()


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("content", [None, b"", b"no archive"])
def test_where_no_checkpoint_fits_none_is_overwritten(tmp_path, other_learner, content):
    save_checkpoint(tmp_path, small_learner(1, width=6).state, Progress(5))
    if content is not None:
        (tmp_path / "step-00000005.npz").write_bytes(content)
    before = values(other_learner)
    with pytest.raises(UserError, match=r"step-00000005\.npz.*remove") as caught:
        restore_checkpoint(tmp_path, other_learner.state)
    assert str(tmp_path) in str(caught.value)
    assert_same(values(other_learner), before)
