"""Tests of qanet.pretraining.mlm_batches."""

import numpy as np
import pytest
from made_sentences import made_sentences

from qanet.datasets.plans import NO_ITEM, PlannedBatch
from qanet.errors import UserError
from qanet.pretraining.config import MLMPretrainingConfig
from qanet.pretraining.mlm_batches import MaskedBatches
from qanet.text.pieces import SPECIAL, WordPieces

PADDING, _, CLS, SEP, MASK = range(5)
LENGTH, ROWS = 24, 4


def config(seed=1, **training):
    return MLMPretrainingConfig.model_validate(
        {
            "data": {"text": [], "length": LENGTH},
            "training": {"batch_size": ROWS, "seed": seed, **training},
        }
    )


@pytest.fixture(scope="module")
def sentences():
    """Documents whose pieces are all different, and none special."""
    found = made_sentences([[3, 5, 4, 6, 2, 7, 5]] * 6 + [[9]])
    found.pieces[:] += len(SPECIAL)
    return found


@pytest.fixture(scope="module")
def vocabulary(sentences):
    return WordPieces([*SPECIAL, *(f"w{i}" for i in range(len(sentences.pieces)))])


@pytest.fixture(scope="module")
def batches(sentences, vocabulary):
    return MaskedBatches(sentences, vocabulary, config(), 1, 200 * ROWS)


def restored(batches, batch):
    """Pieces with what was masked, and the inputs and targets."""
    inputs, targets = batches.inputs(batch), batches.targets(batch)
    pieces = inputs["pieces"].copy()
    for row, positions, labels in zip(
        pieces, inputs["masked_positions"], targets["labels"], strict=True
    ):
        row[positions[positions > 0]] = labels[positions > 0]
    return pieces, inputs, targets


def test_a_sequence_is_cls_a_sep_b_sep_padding(batches):
    for batch in batches.plan()[:50]:
        pieces, inputs, targets = restored(batches, batch)
        assert pieces.shape == inputs["segments"].shape == (ROWS, LENGTH)
        for row, item in enumerate(batch.items):
            a_begin, a_end, b_begin, b_end, is_random = batches.pairs[item]
            a, b = batches.pieces[a_begin:a_end], batches.pieces[b_begin:b_end]
            expected = [CLS, *a, SEP, *b, SEP]
            padding = [PADDING] * (LENGTH - len(expected))
            assert pieces[row].tolist() == expected + padding
            segments = [0] * (len(a) + 2) + [1] * (len(b) + 1)
            assert inputs["segments"][row].tolist() == segments + [0] * len(padding)
            assert targets["is_random"][row] == is_random
            assert is_random in (0, 1)


def test_positions_are_of_a_fixed_number_and_labels_tell_what_is_masked(batches):
    most = round(0.15 * (LENGTH - 3))
    for batch in batches.plan()[:50]:
        pieces, inputs, targets = restored(batches, batch)
        positions, labels = inputs["masked_positions"], targets["labels"]
        assert positions.shape == labels.shape == (ROWS, most)
        # Left over ones are alike in both, and come last.
        np.testing.assert_array_equal(positions > 0, labels != PADDING)
        assert not np.isin(labels, (CLS, SEP, MASK)).any()
        lengths = (pieces >= len(SPECIAL)).sum(axis=1)
        expected = [max(1, round(0.15 * length)) for length in lengths]
        assert (positions > 0).sum(axis=1).tolist() == expected
        for row in positions:
            assert (np.diff(row[row > 0]) > 0).all()
            assert not row[np.count_nonzero(row) :].any()


def test_every_epoch_draws_pairs_and_masks_anew(sentences, vocabulary):
    batches = MaskedBatches(sentences, vocabulary, config(), 1, 1000)
    assert len(batches.pairs) == 1000
    # The same pair, if it comes again, has other pieces masked.
    _, first, which = np.unique(
        batches.pairs, axis=0, return_index=True, return_inverse=True
    )
    assert len(first) > 100
    which = which.reshape(-1)
    pair = np.bincount(which).argmax()
    items = np.flatnonzero(which == pair)[:ROWS]
    assert len(items) == ROWS
    made = batches.inputs(PlannedBatch(items, LENGTH, LENGTH))
    assert len({tuple(row) for row in made["masked_positions"]}) > 1


def test_what_is_made_follows_from_seed_and_number_alone(
    sentences, vocabulary, batches
):
    again = MaskedBatches(sentences, vocabulary, config(), 1, 200 * ROWS)
    other = MaskedBatches(sentences, vocabulary, config(), 2, 200 * ROWS)
    plan = batches.plan()
    assert (batches.pairs != other.pairs).any()
    for number in (7, 3):
        one = batches.inputs(plan[number]) | batches.targets(plan[number])
        # In another order, and in parts as replicas have them.
        parts = [
            PlannedBatch(items, LENGTH, LENGTH)
            for items in np.split(plan[number].items, 2)
        ]
        for name, array in one.items():
            found = [(again.targets(p) | again.inputs(p))[name] for p in parts]
            np.testing.assert_array_equal(np.concatenate(found), array)
    inputs = other.inputs(plan[3])
    assert (inputs["pieces"] != batches.inputs(plan[3])["pieces"]).any()


def test_one_epoch_is_filled_up(sentences, vocabulary):
    batches = MaskedBatches(sentences, vocabulary, config(), 1)
    plan = batches.plan()
    items = np.concatenate([batch.items for batch in plan])
    assert {len(batch.items) for batch in plan} == {ROWS}
    real = items[items != NO_ITEM]
    np.testing.assert_array_equal(real, np.arange(len(batches.pairs)))
    nothing = PlannedBatch(np.full(2, NO_ITEM), LENGTH, LENGTH)
    for array in (batches.inputs(nothing) | batches.targets(nothing)).values():
        assert not array.any()


def test_whole_words_are_asked_for(sentences):
    # Each segment is one word.
    pieces = [f"##w{i}" for i in range(int(sentences.pieces.max()) + 1 - len(SPECIAL))]
    vocabulary = WordPieces([*SPECIAL, *pieces])
    batches = MaskedBatches(
        sentences, vocabulary, config(whole_words=True, masked=0.5), 1, 200
    )
    masked = 0
    for batch in batches.plan():
        targets = batches.targets(batch)
        for row, item in enumerate(batch.items):
            a_begin, a_end, b_begin, b_end, _ = batches.pairs[item]
            segments = [[], range(a_begin, a_end), range(b_begin, b_end)]
            found = targets["labels"][row]
            found = (found[found != PADDING] - len(SPECIAL)).tolist()
            assert found in [list(segment) for segment in segments]
            masked += bool(found)
    assert masked > 100


@pytest.mark.parametrize("lengths", [[[3, 4]], [[3], [4], [5]], []])
def test_too_little_text(vocabulary, lengths):
    with pytest.raises(UserError, match="documents held out are too few, or"):
        MaskedBatches(made_sentences(lengths), vocabulary, config(), 1, 8, "held out")
