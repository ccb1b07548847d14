"""Tests of qanet.pretraining.masking."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qanet.pretraining.masking import Masking
from qanet.text.pieces import SPECIAL, WordPieces

WORDS = [f"w{i}" for i in range(40)]
CONTINUED = [f"##c{i}" for i in range(20)]
VOCABULARY = WordPieces([*SPECIAL, *WORDS, *CONTINUED])
PADDING, UNKNOWN, CLS, SEP, MASK = (VOCABULARY.number_of[piece] for piece in SPECIAL)
NEVER = (PADDING, CLS, SEP)
TEXT = st.lists(
    st.integers(0, len(VOCABULARY.pieces) - 1).filter(
        lambda number: number not in (*NEVER, MASK)
    ),
    min_size=1,
    max_size=60,
)


def sequence(a, b, padding):
    pieces = [CLS, *a, SEP, *b, SEP, *[PADDING] * padding]
    return np.array(pieces, dtype=np.int32)


def words_of(pieces):
    """The positions of each word, found one by one."""
    words, before = [], None
    for place, number in enumerate(pieces):
        piece = VOCABULARY.pieces[number]
        if number in NEVER:
            before = None
            continue
        if piece.startswith("##") and before is not None:
            words[-1].append(place)
        else:
            words.append([place])
        before = piece
    return words


@given(
    TEXT,
    TEXT,
    st.integers(0, 9),
    st.floats(0.01, 0.99),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_what_is_never_masked(a, b, padding, share, whole_words, seed):
    pieces = sequence(a, b, padding)
    before = pieces.copy()
    masking = Masking(VOCABULARY, share, whole_words)
    masked, positions = masking.mask(pieces, np.random.default_rng(seed))
    np.testing.assert_array_equal(pieces, before)
    assert masked.dtype == pieces.dtype
    assert (np.diff(positions) > 0).all()
    assert not np.isin(pieces[positions], NEVER).any()
    # Nothing else is changed, and nothing becomes special but for the mask.
    others = np.setdiff1d(np.arange(len(pieces)), positions)
    np.testing.assert_array_equal(masked[others], pieces[others])
    changed = masked[masked != pieces]
    assert not np.isin(changed, [*NEVER, UNKNOWN]).any()
    text = len(a) + len(b)
    count = max(1, round(share * text))
    assert len(positions) <= count == masking.count(text)
    if not whole_words:
        assert len(positions) == count


@given(TEXT, TEXT, st.floats(0.01, 0.99), st.integers(0, 2**32 - 1))
def test_whole_words_are_masked_together(a, b, share, seed):
    pieces = sequence(a, b, 3)
    masking = Masking(VOCABULARY, share, whole_words=True)
    _, positions = masking.mask(pieces, np.random.default_rng(seed))
    chosen = set(positions.tolist())
    words = words_of(pieces)
    for word in words:
        assert chosen.issuperset(word) or chosen.isdisjoint(word)
    # What is left to choose is less than any word that is left.
    left = masking.count(len(a) + len(b)) - len(chosen)
    assert all(len(word) > left for word in words if chosen.isdisjoint(word))


def test_a_cut_word_does_not_join_the_one_before_the_separator():
    # w0 [SEP] ##c0: two words of a piece each.
    pieces = sequence([5], [45], 0)
    assert VOCABULARY.pieces[45] == "##c0"
    masking = Masking(VOCABULARY, 0.5, whole_words=True)
    drawn = {
        tuple(masking.mask(pieces, np.random.default_rng(seed))[1])
        for seed in range(20)
    }
    assert drawn == {(1,), (3,)}


def draws(masking, pieces, count=3000):
    """Which positions were chosen, and what stands there then, `(count, length)`."""
    chosen, masked = np.zeros((2, count, len(pieces)), dtype=int)
    for seed in range(count):
        masked[seed], positions = masking.mask(pieces, np.random.default_rng(seed))
        chosen[seed, positions] = 1
    return chosen.astype(bool), masked


@pytest.mark.parametrize("whole_words", [False, True])
def test_shares_over_many_draws(whole_words):
    """Each within five standard deviations of a binomial distribution's mean."""
    text = [*range(5, 45), *range(45, 65)]
    if whole_words:
        # Words of one piece and of two.
        text = [*range(5, 25), *(n for i in range(20) for n in (25 + i, 45 + i))]
    pieces = sequence(text, [6] * 20, 5)
    real = ~np.isin(pieces, NEVER)
    masking = Masking(VOCABULARY, 0.15, whole_words)
    chosen, masked = draws(masking, pieces)
    number = chosen.sum()
    count = round(0.15 * real.sum())
    assert number <= len(chosen) * count
    assert number >= len(chosen) * count * (0.95 if whole_words else 1)

    def check(observed, expected, total):
        deviation = np.sqrt(total * expected * (1 - expected))
        assert abs(observed - total * expected) < 5 * deviation

    became_mask = chosen & (masked == MASK)
    changed = chosen & (masked != pieces) & ~became_mask
    check(became_mask.sum(), 0.8, number)
    # One of the replacements is the piece itself.
    others = len(VOCABULARY.pieces) - len(SPECIAL)
    check(changed.sum(), 0.1 * (1 - 1 / others), number)
    check((chosen & (masked == pieces)).sum(), 0.1 + 0.1 / others, number)
    # Every piece that is a word by itself is as likely as any other.
    single = [place for (place, *more) in words_of(pieces) if not more]
    share = chosen[:, single].mean()
    for place in single:
        check(chosen[:, place].sum(), share, len(chosen))
    # Replacements are any pieces but special ones.
    counts = np.bincount(masked[changed], minlength=len(VOCABULARY.pieces))
    assert not counts[: len(SPECIAL)].any()
    for observed in counts[len(SPECIAL) :]:
        check(observed, 1 / others, counts.sum())


def test_the_same_draw_hides_the_same_and_another_one_other_pieces():
    pieces = sequence(range(5, 65), [6] * 20, 0)
    masking = Masking(VOCABULARY, 0.15)
    one, again, other = (
        masking.mask(pieces, np.random.default_rng(seed))[0] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


@settings(max_examples=20)
@given(st.integers(1, 3))
def test_where_no_whole_word_fits_none_is_masked(seed):
    pieces = sequence([5, 45, 46], [6, 47], 0)
    masking = Masking(VOCABULARY, 0.15, whole_words=True)
    masked, positions = masking.mask(pieces, np.random.default_rng(seed))
    assert len(positions) == 0
    np.testing.assert_array_equal(masked, pieces)
