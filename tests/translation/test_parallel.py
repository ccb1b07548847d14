"""Tests of qanet.translation.parallel."""

import gzip
from collections import Counter
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qanet.datasets.plans import NO_ITEM, PlannedBatch
from qanet.errors import UserError
from qanet.translation.config import TranslationLearningConfig
from qanet.translation.parallel import PairBatches, read_pairs, split_held_out
from qanet.translation.subwords import BEGIN, END, PADDING


def test_pairs_of_several_files_each_once(tmp_path):
    one, two = tmp_path / "one.tsv", tmp_path / "two.tsv.gz"
    one.write_text("\ufeffHi.\tSalut !\ttatoeba\r\n a \t b\n", encoding="utf-8")
    two.write_bytes(gzip.compress("a\tb\tagain\nétage\tfloor\n".encode()))
    expected = [("Hi.", "Salut !"), ("a", "b"), ("étage", "floor")]
    paths = [str(one), str(two)]
    assert read_pairs(paths) == expected
    assert read_pairs(paths, reverse=True) == [pair[::-1] for pair in expected]


@pytest.mark.parametrize("line", ["", "no tab", "a\t", "\tb", " \tb", "a\t \tc"])
def test_a_line_that_is_no_pair_is_named(tmp_path, line):
    path = tmp_path / "pairs.tsv"
    path.write_text(f"a\tb\n{line}\n")
    with pytest.raises(UserError, match=r"pairs\.tsv: line 2 is no pair"):
        read_pairs([str(path)])


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(UserError, match=r"pairs\.tsv\.gz: cannot be read"):
        read_pairs([str(tmp_path / "pairs.tsv.gz")])


PAIRS = [(f"s{i}", f"t{i // 2}") for i in range(100)]


def test_held_out_pairs_share_no_side_with_the_training():
    train, held_out = split_held_out(PAIRS, 10)
    assert len(held_out) == len(set(held_out)) == 10
    assert not {t for _, t in held_out} & {t for _, t in train}
    assert set(train) | set(held_out) <= set(PAIRS)
    # Each target stands twice: at most one pair is lost for each held out.
    assert 80 <= len(train) <= 90


def test_what_is_held_out_follows_from_the_pairs_alone():
    _, held_out = split_held_out(PAIRS, 10)
    _, again = split_held_out(PAIRS[::-1], 10)
    assert again == held_out
    _, reversed_ = split_held_out([pair[::-1] for pair in PAIRS], 10)
    assert [pair[::-1] for pair in reversed_] == held_out


def test_too_few_pairs():
    with pytest.raises(UserError, match="5 pairs are too few"):
        split_held_out(PAIRS[:5], 5)


def batches_of(lengths, **settings):
    """Batches of pairs whose sides have so many sub-words, all the pair's number."""
    settings = {"buckets": (4, 8), "batch_tokens": 16} | settings
    sources = [[10 + i] * source for i, (source, _) in enumerate(lengths)]
    targets = [[10 + i] * target for i, (_, target) in enumerate(lengths)]
    return PairBatches(sources, targets, TranslationLearningConfig(**settings))


def items_of(batches, plan):
    """The numbers of the pairs in planned batches."""
    rows = chain.from_iterable(batches.inputs(planned)["source"] for planned in plan)
    return [int(row[0]) - 10 for row in rows if row[0] != PADDING]


def test_a_batch_holds_marks_and_padding():
    batches = batches_of([(2, 3), (1, 1)])
    planned = PlannedBatch(np.array([1, 0, NO_ITEM]), 4, 4)
    inputs, after = batches.inputs(planned), batches.targets(planned)["next"]
    assert inputs["source"].tolist() == [[11, END, 0, 0], [10, 10, END, 0], [0] * 4]
    assert inputs["target"].tolist() == [
        [BEGIN, 11, 0, 0],
        [BEGIN, 10, 10, 10],
        [0] * 4,
    ]
    assert after.tolist() == [[11, END, 0, 0], [10, 10, 10, END], [0] * 4]
    assert {array.dtype for array in (*inputs.values(), after)} == {np.dtype("int32")}


LENGTHS = st.lists(
    st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=30
)


@given(LENGTHS, st.integers(0, 3))
def test_every_pair_takes_its_turn(lengths, seed):
    fits = [i for i, pair in enumerate(lengths) if max(pair) < 8]
    if not fits:
        with pytest.raises(UserError, match="no pair has at most 7 sub-words"):
            batches_of(lengths, seed=seed)
        return
    batches = batches_of(lengths, seed=seed)
    assert batches.left_out == len(lengths) - len(fits)
    assert sorted(items_of(batches, batches.reading())) == fits
    drawn = batches.plan(60)
    assert len(drawn) == 60
    for planned in drawn:
        inputs, after = batches.inputs(planned), batches.targets(planned)["next"]
        assert inputs["source"].shape == inputs["target"].shape == after.shape
        assert after.shape in ((4, 4), (2, 8))
        assert (inputs["source"][:, 0] != PADDING).all()
    for length in (4, 8):
        same = [planned for planned in drawn if planned.context_length == length]
        turns = Counter(items_of(batches, same))
        if turns:
            assert max(turns.values()) - min(turns.values()) <= 2
