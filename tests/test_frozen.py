"""Tests of qanet.frozen: vectors of a small public BERT."""

import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_bilm import OPTIONS, layers_with_marks, random_arrays

from qanet import frozen
from qanet.errors import UserError
from qanet.frozen import first_pieces, open_encoder, windows_of
from qanet.text.tokenizer import words_of

PUBLIC = Path(__file__).parent / "models" / "public_bert"
EXPECTED = json.loads((PUBLIC / "expected.json").read_text("utf-8"))
# As pieces: b ##b d e a f; the numbers of `EXPECTED["context"]`.
TEXT = "bb d e a f"


@pytest.fixture(scope="module")
def encoder():
    return open_encoder(PUBLIC, 2)


def encoded(encoder, *texts):
    spans = [np.array(words_of(text)[1]).reshape(-1, 2) for text in texts]
    return list(encoder.encode(texts, spans))


def test_words_have_the_hidden_states_of_their_first_piece(encoder):
    (found,) = encoded(encoder, TEXT)
    assert found.shape == (5, 2, 8)
    assert (encoder.layers, encoder.width) == found.shape[1:]
    assert found.dtype == np.float16
    # By block, then by piece; the second piece is no word's first.
    expected = np.array(EXPECTED["states_alone"])[:, [0, 2, 3, 4, 5]]
    np.testing.assert_allclose(found.swapaxes(0, 1), expected, atol=2e-3)


def test_of_two_copies_of_the_weights_one_is_kept(tmp_path):
    directory = tmp_path / "bert"
    shutil.copytree(PUBLIC, directory)
    before = open_encoder(directory, 2).files
    (directory / "bert_model.ckpt.index").write_bytes(b"other weights")
    assert open_encoder(directory, 2).files == before


def test_the_last_blocks_alone(encoder):
    (found,) = encoded(open_encoder(PUBLIC, 1), TEXT)
    np.testing.assert_array_equal(found, encoded(encoder, TEXT)[0][:, 1:])


def test_texts_that_are_read_together_do_not_change_one_another(encoder, monkeypatch):
    texts = ["a", "bb d e a f g", "", "c " * 70, "d ,a"]
    together = encoded(encoder, *texts)
    assert [len(vectors) for vectors in together] == [1, 6, 0, 70, 3]
    monkeypatch.setattr(frozen, "TEXTS", 2)
    for vectors, text, apart in zip(
        together, texts, encoded(encoder, *texts), strict=True
    ):
        (alone,) = encoded(encoder, text)
        np.testing.assert_allclose(vectors, alone, atol=2e-3)
        np.testing.assert_allclose(vectors, apart, atol=2e-3)


def test_few_long_texts_are_in_memory_together(monkeypatch):
    monkeypatch.setattr(frozen, "TEXTS", 3)
    monkeypatch.setattr(frozen, "CHARACTERS", 10)
    groups = list(frozen.groups_of([4, 6, 1, 1, 1, 1, 50, 2]))
    assert groups == [slice(0, 2), slice(2, 5), slice(5, 6), slice(6, 7), slice(7, 8)]
    assert list(frozen.groups_of([])) == []


def test_long_texts_are_read_in_windows(encoder, monkeypatch):
    text = "a b c d " * 5
    (whole,) = encoded(encoder, text)
    monkeypatch.setattr(frozen.FrozenBERT, "WINDOW", 8)
    monkeypatch.setattr(frozen.FrozenBERT, "STRIDE", 4)
    (found,) = encoded(encoder, text)
    # The first and the last words are told by the first and the last window.
    (begin,) = encoded(encoder, " ".join(text.split()[:8]))
    np.testing.assert_allclose(found[:6], begin[:6], atol=2e-3)
    (middle,) = encoded(encoder, " ".join(text.split()[4:12]))
    np.testing.assert_allclose(found[6:10], middle[2:6], atol=2e-3)
    assert found.shape == whole.shape
    assert np.abs(found - whole).max() > 0.01


def test_texts_longer_than_the_positions_are_read(encoder, monkeypatch):
    read = []
    predict = encoder.predict
    monkeypatch.setattr(
        encoder, "predict", lambda numbers: read.append(numbers) or predict(numbers)
    )
    (found,) = encoded(encoder, "a " * 1200)
    assert found.shape[0] == 1200
    assert np.isfinite(found).all()
    assert max(numbers.shape[1] for numbers in read) <= frozen.POSITIONS


def test_a_copy_gives_the_same_vectors(encoder, tmp_path):
    encoder.save(tmp_path / "new" / "copy")
    copy = open_encoder(tmp_path / "new" / "copy", 2)
    assert copy.key == encoder.key
    np.testing.assert_array_equal(encoded(copy, TEXT)[0], encoded(encoder, TEXT)[0])


def test_other_vectors_have_another_key(encoder, tmp_path):
    assert open_encoder(PUBLIC, 1).key != encoder.key
    encoder.save(tmp_path)
    path = tmp_path / "model.safetensors"
    changed = bytearray(path.read_bytes())
    changed[-1] ^= 1
    path.write_bytes(changed)
    assert open_encoder(tmp_path, 2).key != encoder.key


def test_what_is_no_language_model_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"model\.contextual_layers=3"):
        open_encoder(PUBLIC, 3)
    with pytest.raises(UserError, match=str(tmp_path)):
        open_encoder(tmp_path, 1)
    config = json.loads((PUBLIC / "config.json").read_bytes())
    (tmp_path / "vocab.txt").write_bytes((PUBLIC / "vocab.txt").read_bytes())
    for change, message in (
        ({}, "has neither model.safetensors nor"),
        ({"num_attention_heads": 3}, "does not divide"),
        ({"hidden_size": 10**6}, "width"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config | change))
        with pytest.raises(UserError, match=message) as error:
            open_encoder(tmp_path, 1)
        assert str(tmp_path) in str(error.value)


@pytest.fixture
def elmo(rng, tmp_path):
    """A small ELMo model: its directory and its weights."""
    arrays = random_arrays(rng)
    with h5py.File(tmp_path / "weights.hdf5", "w") as file:
        for name, array in arrays.items():
            file[name] = array
    (tmp_path / "options.json").write_text(json.dumps(OPTIONS))
    return tmp_path, arrays


def test_elmo_reads_the_words_of_a_text_as_a_sentence(elmo):
    directory, arrays = elmo
    words = words_of("The Zoë of 東京")[0]
    encoder = open_encoder(directory, 3)
    found, other = encoded(encoder, "The Zoë of 東京", "One.")
    assert (encoder.layers, encoder.width) == found.shape[1:]
    assert other.shape == (2, 3, 8)
    # In NumPy, without the marks around the sentence.
    expected = layers_with_marks(words, arrays)[1:-1]
    np.testing.assert_allclose(found, expected, atol=2e-3)
    (last,) = encoded(open_encoder(directory, 1), "The Zoë of 東京")
    np.testing.assert_allclose(last, expected[:, 2:], atol=2e-3)


def test_a_copy_of_elmo_gives_the_same_vectors(elmo, tmp_path):
    encoder = open_encoder(elmo[0], 2)
    encoder.save(tmp_path / "copy")
    copy = open_encoder(tmp_path / "copy", 2)
    assert copy.key == encoder.key
    np.testing.assert_array_equal(encoded(copy, "One")[0], encoded(encoder, "One")[0])
    with pytest.raises(UserError, match=r"has 3 layers; .*contextual_layers=4"):
        open_encoder(elmo[0], 4)


@given(
    st.integers(1, 60),
    st.integers(2, 12).flatmap(
        lambda window: st.tuples(st.just(window), st.integers(1, window - 1))
    ),
)
def test_each_token_is_told_by_one_window_that_holds_it(length, sizes):
    window, stride = sizes
    told = []
    for offset, size, first, last in windows_of(length, window, stride):
        assert size <= window
        assert offset <= first < last <= offset + size <= length
        told += range(first, last)
    assert told == list(range(length))


def test_a_token_is_told_where_it_is_central():
    assert list(windows_of(20, 8, 4)) == [
        (0, 8, 0, 6),
        (4, 8, 6, 10),
        (8, 8, 10, 14),
        (12, 8, 14, 20),
    ]
    assert list(windows_of(0, 8, 4)) == []


def test_a_word_without_a_piece_at_its_begin_has_no_vector():
    states = np.arange(1, 4, dtype="float32").reshape(3, 1, 1)
    places = np.array([(0, 2), (2, 4), (7, 9)])
    words = np.array([(0, 4), (5, 6), (7, 9), (10, 12)])
    assert first_pieces(states, places, words).ravel().tolist() == [1, 0, 3, 0]
    assert not first_pieces(states[:0], places[:0], words).any()
