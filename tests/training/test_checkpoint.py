"""Tests of qanet.training.checkpoint on a model of a few numbers."""

import os

import keras
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qanet.config import Config
from qanet.errors import UserError
from qanet.training.checkpoint import (
    Progress,
    restore_checkpoint,
    save_checkpoint,
)
from qanet.training.trainer import compile_model
from qanet.weights import training_variables

ROW = {"step": 2, "loss": 0.1 + 0.2, "f1": 1 / 3}


def small_model(seed, width=4):
    """A model with weights, dropout and the outputs that the loss wants."""
    keras.utils.set_random_seed(seed)
    x = keras.Input((3,))
    y = keras.layers.Dense(width, activation="tanh", name="hidden")(x)
    y = keras.layers.Dropout(0.5)(y)
    logits = {
        name: keras.layers.Dense(5, name=name)(y)
        for name in ("start_logits", "end_logits")
    }
    model = keras.Model(x, logits)
    compile_model(model, Config())
    return model


def train(model, steps):
    random = np.random.default_rng(0)
    x = random.normal(size=(6, 3))
    y = dict.fromkeys(("start_logits", "end_logits"), np.eye(5)[np.arange(6) % 5])
    for _ in range(steps):
        model.train_on_batch(x, y)


def values(model):
    return {
        name: keras.ops.convert_to_numpy(variable).copy()
        for name, variable in training_variables(model).items()
    }


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.fixture(scope="module")
def trained_model():
    model = small_model(1)
    train(model, 3)
    return model


@pytest.fixture(scope="module")
def other_model():
    """A model with the same variables and other values."""
    model = small_model(2)
    train(model, 2)
    return model


def test_everything_that_training_changes_comes_back(
    trained_model, other_model, tmp_path
):
    progress = Progress(7, 12.5, 1 / 3, 2, [ROW, ROW | {"step": 4}])
    save_checkpoint(tmp_path, trained_model, progress)
    saved = values(trained_model)
    assert restore_checkpoint(tmp_path, other_model) == progress
    assert_same(values(other_model), saved)


def test_training_goes_on_bit_for_bit(trained_model, other_model, tmp_path):
    save_checkpoint(tmp_path, trained_model, Progress(3))
    train(trained_model, 2)
    uninterrupted = values(trained_model)
    assert restore_checkpoint(tmp_path, other_model)
    train(other_model, 2)
    assert_same(values(other_model), uninterrupted)
    assert restore_checkpoint(tmp_path, trained_model)


def test_resume_of_a_model_that_has_not_taken_a_step(trained_model, tmp_path):
    """As in a new process: the optimizer's state must be there to be assigned.

    Nor may the names count that Keras numbers through in the order of making.
    """
    save_checkpoint(tmp_path, trained_model, Progress(3))
    model = small_model(2)
    assert restore_checkpoint(tmp_path, model) == Progress(3)
    assert_same(values(model), values(trained_model))


def test_seeds_not_in_the_checkpoint(trained_model, other_model, tmp_path):
    save_checkpoint(tmp_path, trained_model, Progress(3))
    restored, original = [], []
    assert restore_checkpoint(tmp_path, other_model)
    for seeds, of in ((restored, other_model), (original, trained_model)):
        seeds += [
            keras.ops.convert_to_numpy(variable)
            for variable in of.variables
            if "seed" in variable.path
        ]
    assert original
    assert_same(dict(enumerate(restored)), dict(enumerate(original)))


def test_ema_not_in_the_checkpoint(trained_model, other_model, tmp_path):
    from qanet.training.optimizer import averaged_weights

    save_checkpoint(tmp_path, trained_model, Progress(3))
    with averaged_weights(trained_model):
        expected = trained_model.get_weights()
    restore_checkpoint(tmp_path, other_model)
    with averaged_weights(other_model):
        actual = other_model.get_weights()
    assert not np.array_equal(actual[0], other_model.get_weights()[0])
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_nothing_to_restore(trained_model, tmp_path):
    before = values(trained_model)
    assert restore_checkpoint(tmp_path / "missing", trained_model) is None
    assert_same(values(trained_model), before)


def test_only_the_newest_two_are_kept_and_no_temporary_files(trained_model, tmp_path):
    for step in (8, 9, 10, 100):
        save_checkpoint(tmp_path, trained_model, Progress(step))
    assert sorted(os.listdir(tmp_path)) == ["step-00000010.npz", "step-00000100.npz"]
    assert restore_checkpoint(tmp_path, trained_model).step == 100


def test_what_a_killed_process_left_is_removed(trained_model, tmp_path):
    (tmp_path / ".step-00000001.npz.99.tmp").write_bytes(b"a part")
    (tmp_path / "kept.tmp").write_bytes(b"somebody else's")
    save_checkpoint(tmp_path, trained_model, Progress(2))
    assert sorted(os.listdir(tmp_path)) == ["kept.tmp", "step-00000002.npz"]


def test_failed_save_leaves_the_old_checkpoints_and_no_temporary_file(
    trained_model, tmp_path, monkeypatch
):
    save_checkpoint(tmp_path, trained_model, Progress(1))
    save_checkpoint(tmp_path, trained_model, Progress(2))
    whole = np.savez

    def full_disk(file, **arrays):
        whole(file, **arrays)
        file.truncate(100)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(UserError, match="No space"):
        save_checkpoint(tmp_path, trained_model, Progress(3))
    assert sorted(os.listdir(tmp_path)) == ["step-00000001.npz", "step-00000002.npz"]
    assert restore_checkpoint(tmp_path, trained_model).step == 2


@pytest.fixture(scope="module")
def two_checkpoints(trained_model, tmp_path_factory):
    """A directory with checkpoints of step 1 and 2 that differ."""
    directory = tmp_path_factory.mktemp("checkpoints")
    save_checkpoint(directory, trained_model, Progress(2))
    second = values(trained_model)
    train(trained_model, 1)
    save_checkpoint(directory, trained_model, Progress(1))
    first = values(trained_model)
    assert any(not np.array_equal(first[name], second[name]) for name in first)
    return directory, first


def damaged_copy(source, target, content):
    target.mkdir(exist_ok=True)
    name = "step-00000001.npz"
    (target / name).write_bytes((source / name).read_bytes())
    (target / "step-00000002.npz").write_bytes(content)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.99, 0.9999])
def test_cut_off_checkpoint_is_recognised_and_the_one_before_used(
    two_checkpoints, other_model, tmp_path, share
):
    directory, first = two_checkpoints
    content = (directory / "step-00000002.npz").read_bytes()
    damaged_copy(directory, tmp_path, content[: int(share * len(content))])
    assert restore_checkpoint(tmp_path, other_model) == Progress(1)
    assert_same(values(other_model), first)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_flipped_bits_never_stop_the_resumption(
    two_checkpoints, other_model, tmp_path, data
):
    directory, _ = two_checkpoints
    content = bytearray((directory / "step-00000002.npz").read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    damaged_copy(directory, tmp_path / "copy", bytes(content))
    # Not every bit of a zip file is checked: 2 where the bit says nothing.
    assert restore_checkpoint(tmp_path / "copy", other_model).step in (1, 2)


def test_pickled_array_is_never_loaded(two_checkpoints, other_model, tmp_path):
    directory, first = two_checkpoints
    damaged_copy(directory, tmp_path, b"")
    with np.load(directory / "step-00000002.npz") as file:
        arrays = {name: file[name] for name in file.files}
    name = min(arrays)
    fired = tmp_path / "fired"
    arrays[name] = np.array([Bomb(fired)], dtype=object)
    np.savez(tmp_path / "step-00000002.npz", **arrays)
    assert restore_checkpoint(tmp_path, other_model) == Progress(1)
    assert_same(values(other_model), first)
    assert not fired.exists()


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("content", [None, b"", b"no archive"])
def test_where_no_checkpoint_fits_none_is_overwritten(tmp_path, other_model, content):
    save_checkpoint(tmp_path, small_model(1, width=6), Progress(5))
    if content is not None:
        (tmp_path / "step-00000005.npz").write_bytes(content)
    before = values(other_model)
    with pytest.raises(UserError, match=r"step-00000005\.npz.*remove") as caught:
        restore_checkpoint(tmp_path, other_model)
    assert str(tmp_path) in str(caught.value)
    assert_same(values(other_model), before)
