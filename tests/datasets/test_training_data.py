"""Tests of qanet.datasets.training_data: the packed data set."""

from dataclasses import fields, replace

import numpy as np
import pytest
from made_training_data import COUNTS, odd_training_data

from qanet.config import Config
from qanet.datasets.features import Features, build_features
from qanet.datasets.soft_targets import TeacherTargets
from qanet.datasets.squad import COUNTS as NAMES
from qanet.datasets.training_data import load_packed, save_packed
from qanet.datasets.training_files import read_training_data
from qanet.errors import UserError
from qanet.files import pack_json
from qanet.text.vocabulary import RESERVED, Vocabulary


@pytest.fixture
def data():
    return odd_training_data()


def assert_same_features(actual, expected, leave_out=()):
    for field in fields(Features):
        if field.name not in leave_out:
            np.testing.assert_array_equal(
                getattr(actual, field.name), getattr(expected, field.name), field.name
            )


def test_a_packed_data_set_keeps_what_a_training_needs(data, tmp_path):
    save_packed(tmp_path / "data.npz", data)
    loaded = load_packed(tmp_path / "data.npz")

    assert_same_features(loaded.train, data.train, leave_out=["context_spans"])
    assert sorted(loaded.dev_examples, key=lambda e: e.id) == data.dev_examples
    assert_same_features(loaded.dev, build_features(loaded.dev_examples))
    assert loaded.counts == COUNTS
    assert list(loaded.sources.items()) == list(data.sources.items())
    assert loaded.vocabulary.words == data.vocabulary.words
    assert loaded.vocabulary.characters == data.vocabulary.characters
    assert loaded.vocabulary.characters_per_word == 5
    assert loaded.vocabulary.vectors.dtype == np.float16
    np.testing.assert_array_equal(loaded.vocabulary.vectors, data.vocabulary.vectors)


def test_a_packed_data_set_without_vectors(data, tmp_path):
    vocabulary = Vocabulary([*RESERVED, "lives"], RESERVED, 5)
    data.vocabulary = vocabulary
    save_packed(tmp_path / "data.npz", data)
    loaded = load_packed(tmp_path / "data.npz")
    assert loaded.vocabulary.vectors is None
    assert loaded.vocabulary.words == vocabulary.words


def test_a_teacher_is_packed_with_its_data(data, tmp_path):
    said = TeacherTargets(np.zeros((2, 14), "float16"), np.array([0, 7, 14]), False)
    path = tmp_path / "data.npz"
    save_packed(path, replace(data, teacher=said))
    packed = load_packed(path).teacher
    np.testing.assert_array_equal(packed.values, said.values)
    np.testing.assert_array_equal(packed.splits, said.splits)
    assert not packed.none_first
    # A student that is to know no answer needs another.
    settings = {"data": {"packed": str(path), "no_answer": True}}
    with pytest.raises(UserError, match=r"soft targets are of another data\.no_answer"):
        read_training_data(Config.model_validate(settings), tmp_path / "cache")
    for splits in ([0, 14], [0, 15, 14], [1, 7, 14], [0, 6, 14]):
        rewritten(path, **{"teacher/splits": np.array(splits)})
        with pytest.raises(UserError, match=r"data\.npz: damaged"):
            load_packed(path)


def test_the_digest_tells_training_sets_and_teachers_apart(data, tmp_path):
    said = TeacherTargets(np.zeros((2, 14), "float16"), np.array([0, 7, 14]), False)
    other = replace(said, values=said.values - 1)
    taught = [replace(data, teacher=teacher) for teacher in (None, said, other)]
    turned = replace(data, train=replace(data.train, starts=data.train.ends + 1))
    mixed = replace(data, sources={"fr": 1, "original": 1})

    digests = [some.digests() for some in (*taught, turned, mixed)]

    assert len({each["digest"] for each in digests}) == len(digests)
    # Dev is not trained on, but told from others too.
    assert {each["dev_digest"] for each in digests} == {digests[0]["dev_digest"]}
    other = replace(data, dev_examples=[]).digests()
    assert other["digest"] == digests[0]["digest"]
    assert other["dev_digest"] != digests[0]["dev_digest"]
    # A packed data set is the same data.
    save_packed(tmp_path / "data.npz", taught[1])
    assert load_packed(tmp_path / "data.npz").digests() == digests[1]


def rewritten(path, **changes):
    """The packed data set with some arrays changed or, where `None`, left out."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files} | changes
    np.savez(path, **{k: v for k, v in arrays.items() if v is not None})


@pytest.mark.parametrize(
    "changes",
    [
        {"format": np.int64(99)},
        {"format": None},
        {"vectors": None},
        {"vectors": np.zeros((3, 3), np.float16)},
        {"vectors": np.zeros((4, 3), np.float32)},
        {"vocabulary": pack_json({"words": []})},
        {"dev": np.frombuffer(b"{", dtype=np.uint8)},
        {"train/words": None},
        {"train/starts": None},
        {"train/more": np.zeros(1)},
        {"counts": np.frombuffer(b"\xff", dtype=np.uint8)},
        {"counts": pack_json({"train": {"questions": 2}, "dev": {}})},
        {"counts": pack_json([1, 2])},
        {"format": np.float64("inf")},
        {
            "counts": pack_json(
                {"dev": dict.fromkeys((*NAMES, "answers_snapped"), 1e999)}
            )
        },
        {"counts": np.frombuffer(b"[" * 100_000, dtype=np.uint8)},
        {"train/words": pack_json(["", *range(3)])},
        {"train/words": pack_json([""])},
        {"train/words": pack_json("words")},
        {"train/context_words": np.array([-1, -1])},
        {"train/context_splits": np.array([1])},
        {"train/context_splits": np.zeros(0, int)},
        {"train/context_of": np.array([7, 7])},
        {"train/context_of": np.zeros(2)},
        {"train/question_splits": np.array([0, 9, 4])},
        {"train/starts": np.array([3, 3])},
        {"train/ends": np.array([-1, 99])},
        {"train/ends": np.array(1)},
        {"train/impossible": np.zeros(2)},
        {"train/impossible": np.zeros(3, bool)},
        {"sources": None},
        {"counts": pack_json({})},
        {"sources": pack_json({"original": 1})},
        {"sources": pack_json({"original": 3, "fr": -1})},
        {"sources": pack_json({"fr": 2})},
        {"sources": pack_json([2])},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_packed_data_set_that_is_not_ours(data, tmp_path, changes):
    path = tmp_path / "data.npz"
    save_packed(path, data)
    rewritten(path, **changes)
    with pytest.raises(UserError) as error:
        load_packed(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"no archive", None])
def test_a_file_that_is_no_packed_data_set(data, tmp_path, content):
    path = tmp_path / "data.npz"
    save_packed(path, data)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.raises(UserError, match="python -m qanet pack"):
        load_packed(path)


def test_a_missing_packed_data_set(tmp_path):
    with pytest.raises(UserError, match="cannot be read: No such file"):
        load_packed(tmp_path / "data.npz")


@pytest.mark.parametrize(
    "changes",
    [
        {"values": np.zeros((2, 1), np.float16)},
        {"values": np.full((2, 14), np.nan, np.float16)},
        {"values": np.zeros((2, 14))},
        {"splits": np.array([0, 1, 14])},
        {"splits": np.array([0.0, 7.0, 14.0])},
        {"splits": np.zeros(0, int)},
        {"splits": np.array(0)},
        {"none_first": np.array([True, False])},
        {"none_first": np.array("yes")},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_packed_teacher_that_is_of_other_data(data, tmp_path, changes):
    path = tmp_path / "data.npz"
    lengths = data.train.context_lengths
    splits = np.concatenate([[0], np.cumsum(lengths)])
    values = np.zeros((2, splits[-1]), np.float16)
    save_packed(path, replace(data, teacher=TeacherTargets(values, splits, False)))
    assert load_packed(path).teacher.splits.tolist() == splits.tolist()
    rewritten(path, **{f"teacher/{name}": array for name, array in changes.items()})
    with pytest.raises(UserError, match="make it anew"):
        load_packed(path)
