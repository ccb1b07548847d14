"""Tests of qanet.pretraining.pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_sentences import made_sentences

from qanet.pretraining.pairs import draw_pairs, encode_documents
from qanet.text.pieces import SPECIAL, WordPieces

# The pieces of each sentence of each document.
LENGTHS = st.lists(
    st.lists(st.integers(1, 30), min_size=1, max_size=12), min_size=2, max_size=6
)


def document_of(sentences, place):
    ends = sentences.begins[sentences.documents[1:]]
    return int(np.searchsorted(ends, place, side="right"))


@given(LENGTHS, st.integers(8, 60), st.integers(0, 2**32 - 1))
def test_what_a_pair_is(lengths, length, seed):
    sentences = made_sentences(lengths)
    pairs = draw_pairs(sentences, length, np.random.default_rng(seed))
    again = draw_pairs(sentences, length, np.random.default_rng(seed))
    np.testing.assert_array_equal(pairs, again)
    # Every document of two sentences has a pair at least.
    assert len(pairs) >= sum(len(document) > 1 for document in lengths)
    for a_begin, a_end, b_begin, b_end, is_random in pairs:
        assert a_begin < a_end
        assert b_begin < b_end
        assert a_end - a_begin + b_end - b_begin <= length - 3
        of_a = document_of(sentences, a_begin)
        of_b = document_of(sentences, b_begin)
        # A segment is of one document.
        assert document_of(sentences, a_end - 1) == of_a
        assert document_of(sentences, b_end - 1) == of_b
        assert is_random == (of_a != of_b)
        if not is_random:
            assert a_end <= b_begin


@given(LENGTHS, st.integers(0, 2**32 - 1))
def test_without_cuts_segments_are_whole_sentences_that_follow(lengths, seed):
    sentences = made_sentences(lengths)
    borders = set(sentences.begins.tolist())
    # Room for any two sentences more than are asked for.
    wide = 3 + 12 * 30 + 30
    for pair in draw_pairs(sentences, wide, np.random.default_rng(seed)):
        *bounds, is_random = pair.tolist()
        assert borders.issuperset(bounds)
        if not is_random:
            assert bounds[1] == bounds[2]


def test_the_longer_segment_is_cut_at_both_ends():
    sentences = made_sentences([[40, 40], [40, 40]])
    kept = set()
    for seed in range(200):
        for *bounds, _ in draw_pairs(sentences, 33, np.random.default_rng(seed)):
            a_begin, a_end, b_begin, b_end = map(int, bounds)
            # 30 pieces in all, as near to half as can be.
            assert (a_end - a_begin, b_end - b_begin) == (15, 15)
            kept.add((a_begin % 40, b_begin % 40))
    begins = {begin for begin, _ in kept}
    assert min(begins) < 10
    assert max(begins) > 15
    # Either segment by itself.
    assert len(kept) > 50


def test_a_short_segment_is_not_cut():
    sentences = made_sentences([[4, 40], [4, 40]])
    for seed in range(50):
        pairs = draw_pairs(sentences, 33, np.random.default_rng(seed))
        for a_begin, a_end, b_begin, b_end, _ in pairs.tolist():
            of_a, of_b = a_end - a_begin, b_end - b_begin
            assert of_a == 4
            assert of_b in (4, 26)


SIZES = np.random.default_rng(1).integers(5, 40, 4000)
MANY = made_sentences(SIZES.reshape(100, 40).tolist())


def test_half_of_the_pairs_are_random_and_lengths_vary():
    random = np.random.default_rng(3)
    pairs = np.concatenate([draw_pairs(MANY, 128, random) for _ in range(5)])
    is_random = pairs[:, 4]
    deviation = 0.5 * np.sqrt(len(pairs))
    assert abs(is_random.sum() - 0.5 * len(pairs)) < 5 * deviation
    totals = pairs[:, 1] - pairs[:, 0] + pairs[:, 3] - pairs[:, 2]
    # Most fill the sequence, a tenth is shorter if sentences allow it; second segments
    # of other documents may end early with them.
    following = totals[is_random == 0]
    assert 0.8 < (following > 100).mean() < 0.97
    assert (totals[is_random == 1] > 100).mean() > 0.7
    # The segments' share varies.
    lengths = pairs[:, 1] - pairs[:, 0]
    assert lengths.std() > 15


def test_a_tenth_of_the_pairs_is_to_be_shorter():
    # Of sentences of one piece, so that a pair is as long as it is to be.
    count, room = 200_000, 30
    sentences = made_sentences([[1] * count] * 2)
    pairs = draw_pairs(sentences, room + 3, np.random.default_rng(3))
    begins, ends = pairs[:, 0], pairs[:, 3]
    # A document's last pair takes what is left of it.
    following = (pairs[:, 4] == 0) & (ends % count > 0)
    totals = (ends - begins)[following]
    # From 2 to the whole length, which is then no shorter.
    share = 0.1 * (1 - 1 / (room - 1))
    deviation = np.sqrt(share * (1 - share) / len(totals))
    assert abs((totals < room).mean() - share) < 5 * deviation
    assert {*totals} == {*range(2, room + 1)}


def test_an_epoch_reads_nearly_everything_and_epochs_differ():
    random = np.random.default_rng(3)
    one, two = (draw_pairs(MANY, 128, random) for _ in range(2))
    assert one.shape != two.shape or (one != two).any()
    read = np.zeros(len(MANY.pieces), int)
    for a_begin, a_end, b_begin, b_end, is_random in one:
        read[a_begin:a_end] += 1
        if not is_random:
            read[b_begin:b_end] += 1
    # What is cut away and what is left over at the end of a document is not read.
    assert read.max() == 1
    assert 0.8 < read.mean() < 1


def test_random_segments_are_of_all_other_documents():
    sentences = made_sentences([[3] * 20] * 5)
    random = np.random.default_rng(1)
    drawn = np.zeros((5, 5), int)
    for _ in range(200):
        for a, _, b, _, is_random in draw_pairs(sentences, 20, random):
            if is_random:
                drawn[document_of(sentences, a), document_of(sentences, b)] += 1
    assert not np.diag(drawn).any()
    others = drawn[~np.eye(5, dtype=bool)]
    expected = others.mean()
    assert abs(others - expected).max() < 5 * np.sqrt(expected)


def test_documents_become_pieces_of_sentences():
    vocabulary = WordPieces([*SPECIAL, "a", "b", "##c", "?"])
    documents = [["A b? Bc?", "a"], [" \u200b", "\x00"], ["b"]]
    found = encode_documents(documents, vocabulary)
    texts = [vocabulary.pieces[number] for number in found.pieces]
    assert texts == ["a", "b", "?", "b", "##c", "?", "a", "b"]
    assert found.begins.tolist() == [0, 3, 6, 7, 8]
    # The second document has no piece.
    assert found.documents.tolist() == [0, 3, 4]
    assert found.pieces.dtype == np.int32


@pytest.mark.parametrize("documents", [[], [[" "]]])
def test_no_document_has_pieces(documents):
    found = encode_documents(documents, WordPieces(SPECIAL))
    assert len(found.pieces) == 0
    assert found.documents.tolist() == [0]
