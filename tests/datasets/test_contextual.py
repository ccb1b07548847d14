"""Tests of qanet.datasets.contextual."""

import io
import os
import time
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from qanet.datasets.contextual import contextual_vectors
from qanet.datasets.features import build_features, join_features
from qanet.datasets.squad import Example
from qanet.errors import UserError
from qanet.text.tokenizer import words_of

EXAMPLES = [
    Example("1", "Where does Bo live?", "Bo lives in Rome.", ()),
    Example("2", "Who?", "It rains", ()),
    Example("3", "Where?", "Bo lives in Rome.", ()),
    Example("4", " ", " ", ()),
]


class Counting:
    """A token's vectors tell its text, its begin and its end; notes what it encodes."""

    layers, width = 2, 3

    def __init__(self, cache=None, key="a"):
        self.cache = cache
        self.key = key
        self.texts = []

    def encode(self, texts, spans):
        for text, places in zip(texts, spans, strict=True):
            self.texts.append(text)
            yield np.array(
                [[[len(text), *place]] * 2 for place in places], "float16"
            ).reshape(-1, 2, 3)


def vectors_of(encoder, examples=EXAMPLES, features=None):
    features = features or build_features(examples)
    return contextual_vectors(encoder, examples, features, words_of)


def expected(texts):
    places = [(len(text), *place) for text in texts for place in words_of(text)[1]]
    return np.repeat(np.array(places, "float16").reshape(-1, 1, 3), 2, axis=1)


def test_vectors_are_in_the_order_of_the_tokens():
    encoder = Counting()
    found = vectors_of(encoder)
    contexts = ["Bo lives in Rome.", "It rains", " "]
    questions = [example.question for example in EXAMPLES]
    np.testing.assert_array_equal(found.context, expected(contexts))
    np.testing.assert_array_equal(found.question, expected(questions))
    # Each context once.
    assert encoder.texts == contexts + questions


def test_contexts_of_several_sets_are_those_of_their_features():
    # The second set has a context of the first one again.
    sets = EXAMPLES[:2], EXAMPLES[2:]
    features = join_features([build_features(part) for part in sets])
    found = vectors_of(Counting(), features=features)
    texts = ["Bo lives in Rome.", "It rains", "Bo lives in Rome.", " "]
    np.testing.assert_array_equal(found.context, expected(texts))
    sizes = np.diff(features.context_splits)
    assert [end - begin for begin, end in pairwise(features.context_splits)] == [*sizes]
    assert len(found.context) == sizes.sum()


def test_a_second_time_nothing_is_encoded(tmp_path):
    first, second = Counting(tmp_path / "new"), Counting(tmp_path / "new")
    expected, found = vectors_of(first), vectors_of(second)
    assert not second.texts
    np.testing.assert_array_equal(found.context, expected.context)
    np.testing.assert_array_equal(found.question, expected.question)
    # On disk until they are read.
    assert isinstance(found.context, np.memmap)
    assert all(path.suffix == ".npy" for path in (tmp_path / "new").iterdir())


@pytest.mark.parametrize("change", ["key", "text", "tokens"])
def test_other_vectors_are_not_mistaken_for_these(tmp_path, change):
    vectors_of(Counting(tmp_path))
    other = Counting(tmp_path, key="b" if change == "key" else "a")
    examples, split = EXAMPLES, words_of
    if change == "text":
        examples = [Example("1", "Where does Bo live?", "Bo dwells in Rome", ())]
    if change == "tokens":

        def split(text):
            return [*text], [(i, i + 1) for i in range(len(text))]

    contextual_vectors(other, examples, build_features(examples, split), split)
    assert other.texts


def test_a_damaged_cache_is_made_anew(tmp_path):
    vectors_of(Counting(tmp_path))
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:40])
    again = Counting(tmp_path)
    found = vectors_of(again)
    assert again.texts
    np.testing.assert_array_equal(found.context, vectors_of(Counting()).context)


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, caplog):
    (tmp_path / "file").touch()
    found = vectors_of(Counting(tmp_path / "file" / "cache"))
    np.testing.assert_array_equal(found.context, vectors_of(Counting()).context)
    assert "cannot be written" in caplog.text


def test_what_is_wrong_with_the_encoder_is_no_fault_of_the_cache(tmp_path, caplog):
    encoder = Counting(tmp_path)

    def damaged(texts, spans):
        raise UserError("model.safetensors: damaged")
        yield

    encoder.encode = damaged
    with pytest.raises(UserError, match="damaged"):
        vectors_of(encoder)
    assert not caplog.text


def test_what_a_killed_process_has_left_makes_room(tmp_path):
    vectors_of(Counting(tmp_path))
    (path, *_) = tmp_path.iterdir()
    path.unlink()
    parts = [tmp_path / f".{path.name}.{n}.tmp" for n in ("0123abcd", "4567abcd")]
    other = tmp_path / ".words-1.npz.0123abcd.tmp"
    for part in (*parts, other):
        part.touch()
    hours_ago = time.time() - 7200
    for part in (parts[0], other):
        os.utime(part, (hours_ago, hours_ago))
    vectors_of(Counting(tmp_path))
    # Another process may be writing the second one.
    assert [part.exists() for part in (*parts, other)] == [False, True, False]


def test_a_disk_without_room_is_told_before_anything_is_encoded(tmp_path, monkeypatch):
    usage = SimpleNamespace(free=10)
    monkeypatch.setattr("shutil.disk_usage", lambda place: usage)
    encoder = Counting(tmp_path / "new")
    with pytest.raises(UserError, match="make room, or set XDG_CACHE_HOME"):
        vectors_of(encoder)
    assert not encoder.texts


def archive():
    buffer = io.BytesIO()
    np.savez(buffer, np.zeros(3))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f2',",
        b"\x93NUMPY",
        archive(),
    ],
)
def test_a_cache_of_something_else_is_made_anew(tmp_path, content):
    vectors_of(Counting(tmp_path))
    for path in tmp_path.iterdir():
        path.write_bytes(content)
    again = Counting(tmp_path)
    found = vectors_of(again)
    assert again.texts
    np.testing.assert_array_equal(found.context, vectors_of(Counting()).context)
