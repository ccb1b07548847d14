"""Tests of qanet.translation.search, on chains whose every path can be counted up."""

from itertools import product

import numpy as np
import pytest
from keras import ops

from qanet.translation import search as search_module
from qanet.translation.search import BeamSearch, Sampling, may_end_better
from qanet.translation.subwords import BEGIN, END

PIECES = END + 4
LENGTH = 4


class Chain:
    """A model whose next sub-word depends on the source, the last one and how many.

    Its state counts the sub-words, so that a state that is not carried along with its
    hypothesis shows: `END + 1` counts double.
    """

    def __init__(self, rng, length=LENGTH):
        self.most = 2 * length + 1
        self.table = rng.normal(size=(8, self.most, PIECES, PIECES)) * 2
        self.table = self.table.astype("float32")

    def encode(self, source):
        return (source[:, 0],)

    def begin(self, memory, length):
        return (ops.zeros_like(memory[0]),)

    def advance(self, memory, state, token, position):
        (row,), (counted,) = memory, state
        table = ops.reshape(ops.convert_to_tensor(self.table), (-1, PIECES))
        flat = (row * self.most + counted) * PIECES + token
        doubled = ops.cast(ops.equal(token, END + 1), counted.dtype)
        return ops.take(table, flat, axis=0), (counted + 1 + doubled,)

    def log_probabilities(self, row, path):
        """Of each sub-word of a path, of those that are possible there."""
        counted, token, result = 0, BEGIN, []
        for position, piece in enumerate(path):
            logits = self.table[row, counted, token].astype("float64")
            gains = logits - np.log(np.exp(logits).sum())
            assert piece > END or (piece == END and position)
            result.append(gains[piece])
            counted += 1 + (token == END + 1)
            token = piece
        return result


@pytest.fixture
def chain(rng):
    return Chain(rng)


@pytest.fixture
def source():
    return np.array([[3], [0], [7]], dtype="int32")


def all_paths():
    """Every translation that ends within the length."""
    words = range(END + 1, PIECES)
    for size in range(1, LENGTH):
        for path in product(words, repeat=size):
            yield (*path, END)


def found(tokens):
    """The paths in a row of tokens, up to their ends."""
    paths = [tuple(int(piece) for piece in row) for row in tokens]
    return [path[: path.index(END) + 1] if END in path else path for path in paths]


def search(model, inputs):
    tokens, scores = model.predict_on_batch(inputs)
    assert scores.dtype == np.float32
    assert (np.diff(scores) <= 1e-6).all()
    return tokens, scores


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_many_beams_find_the_best_of_all(chain, source, alpha):
    beams = 30
    model = BeamSearch(chain, beams, LENGTH, alpha)
    tokens, scores = search(model, {"source": source})
    for i, (row,) in enumerate(source):
        expected = sorted(
            (
                (sum(chain.log_probabilities(row, path)))
                / ((5 + len(path)) / 6) ** alpha,
                path,
            )
            for path in all_paths()
        )[::-1][:5]
        assert found(tokens[i])[:5] == [path for _, path in expected]
        np.testing.assert_allclose(
            scores[i][:5], [score for score, _ in expected], rtol=1e-4
        )


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_it_stops_where_nothing_can_end_better_and_not_before(
    rng, source, monkeypatch, alpha
):
    stops = []

    def noting(alive, ended, last_penalty):
        stops.append(not may_end_better(alive, ended, last_penalty))
        return True

    for _ in range(8):
        chain = Chain(rng, length=8)
        chain.table[..., END] += 2.0
        model = BeamSearch(chain, 3, 8, alpha)
        tokens, scores = model({"source": source})
        # To the greatest length, whatever has ended.
        with monkeypatch.context() as patch:
            patch.setattr(search_module, "may_end_better", noting)
            all_tokens, all_scores = model({"source": source})
        np.testing.assert_array_equal(tokens, all_tokens)
        np.testing.assert_array_equal(scores, all_scores)
    assert any(stops)


def test_one_beam_is_greedy(chain, source):
    tokens, _ = search(BeamSearch(chain, 1, LENGTH, 0.0), {"source": source})
    for i, (row,) in enumerate(source):
        (path,) = found(tokens[i])
        for position in range(len(path)):
            choices = range(END if position else END + 1, PIECES)
            best = max(
                choices,
                key=lambda piece: sum(
                    chain.log_probabilities(row, (*path[:position], piece))
                ),
            )
            assert path[position] == best


def test_hypotheses_differ_and_those_that_have_ended_come_first(chain, source):
    tokens, scores = search(BeamSearch(chain, 30, LENGTH), {"source": source})
    for row, row_scores in zip(tokens, scores, strict=True):
        paths = found(row)
        ended = [path[-1] == END for path in paths]
        assert ended == sorted(ended, reverse=True)
        real = [
            path for path, score in zip(paths, row_scores, strict=True) if score > -1e8
        ]
        assert len(set(real)) == len(real)


def test_rows_do_not_know_each_other(chain, source):
    model = BeamSearch(chain, 3, LENGTH)
    tokens, scores = search(model, {"source": source})
    for i in range(3):
        alone = BeamSearch(chain, 3, LENGTH)
        tokens_alone, scores_alone = search(alone, {"source": source[i : i + 1]})
        np.testing.assert_array_equal(tokens_alone[0], tokens[i])
        np.testing.assert_allclose(scores_alone[0], scores[i], rtol=1e-5)


def drawn(chain, row, seeds, temperature, count=2):
    source = np.full((len(seeds), 1), row, dtype="int32")
    model = Sampling(chain, count, LENGTH, temperature)
    inputs = {"source": source, "seed": np.array(seeds, dtype="uint32")}
    tokens, scores = search(model, inputs)
    return [found(row) for row in tokens], scores


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_samples_come_by_their_probability(chain, temperature):
    paths, _ = drawn(chain, 3, range(2000), temperature)
    firsts = np.array([path[0] for row in paths for path in row])
    logits = chain.table[3, 0, BEGIN].astype("float64") / temperature
    weights = np.exp(logits)
    weights[: END + 1] = 0.0
    expected = weights / weights.sum()
    for piece in range(END + 1, PIECES):
        share = (firsts == piece).mean()
        bound = 5 * np.sqrt(expected[piece] * (1 - expected[piece]) / len(firsts))
        assert abs(share - expected[piece]) <= bound


def test_later_sub_words_are_drawn_by_what_came_before(chain):
    paths, _ = drawn(chain, 3, range(3000), 1.0, count=1)
    begin = (END + 2, END + 1)
    nexts = np.array([p[2] for (p,) in paths if p[:2] == begin and len(p) > 2])
    assert len(nexts) > 30
    logits = chain.table[3, 2, END + 1].astype("float64")
    weights = np.exp(logits)
    weights[:END] = 0.0
    expected = weights / weights.sum()
    for piece in range(END, PIECES):
        bound = 5 * np.sqrt(expected[piece] * (1 - expected[piece]) / len(nexts))
        assert abs((nexts == piece).mean() - expected[piece]) <= bound


def test_samples_follow_from_the_seed_of_their_row(chain):
    together, _ = drawn(chain, 3, [5, 6, 5], 1.0, count=4)
    assert together[0] == together[2]
    assert together[0] != together[1]
    alone, _ = drawn(chain, 3, [6], 1.0, count=4)
    assert alone[0] == together[1]


def test_scores_of_samples_are_log_probabilities(chain):
    paths, scores = drawn(chain, 3, range(20), 1.0, count=3)
    for row, row_scores in zip(paths, scores, strict=True):
        for path, score in zip(row, row_scores, strict=True):
            if path[-1] == END:
                expected = sum(chain.log_probabilities(3, path))
                assert score == pytest.approx(expected, rel=1e-4)
            else:
                assert score < -1e3


@pytest.mark.parametrize("piece", [0, END + 2])
def test_the_greatest_draw_makes_nothing_possible(chain, monkeypatch, piece):
    # Of 32 bits; all other sub-words are given the middle.
    def bits(numbers, seeds):
        is_piece = ops.equal(numbers % PIECES, piece)
        return ops.cast(ops.where(is_piece, 2**32 - 1, 2**31), "uint32") + 0 * seeds[0]

    chain.table[..., END + 2] = -60.0
    monkeypatch.setattr(search_module, "hash_uniform_bits", bits)
    paths, _ = drawn(chain, 3, [1], 1.0, count=1)
    assert piece not in paths[0][0]


def test_cold_samples_are_greedy(chain, source):
    greedy, _ = search(BeamSearch(chain, 1, LENGTH, 0.0), {"source": source[:1]})
    paths, _ = drawn(chain, 3, [1, 2], 1e-4, count=1)
    assert paths == [found(greedy[0])] * 2
