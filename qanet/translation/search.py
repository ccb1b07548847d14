"""Finding good translations: beam search and sampling, compiled as a whole.

Both read a batch and give `(tokens, scores)`: int32 `(batch, count, length)`, each row
up to its mark of the end, and float32 `(batch, count)`, the best first. Every sub-word
costs one step of the decoder, which keeps what it has computed of the prefix.
"""

import keras
from keras import ops

from qanet.layers.dropout import hash_uniform_bits
from qanet.translation.subwords import BEGIN, END, PADDING

# For what is not possible: less than any sum of logarithms, and a safe number.
IMPOSSIBLE = -1e9
# Ranks every hypothesis that has not ended behind all that have.
UNFINISHED = -1e4


def length_penalty(length, alpha: float):
    """What a hypothesis' log probability is divided by (Wu et al., 2016, equation 14).

    Args:
        length: sub-words, the mark of the end included.
        alpha: 0 for none; the higher, the better for long hypotheses.
    """
    return ((5.0 + ops.cast(length, "float32")) / 6.0) ** alpha


def may_end_better(alive, ended, last_penalty):
    """Whether some hypothesis may still end better than the worst that has ended.

    Log probabilities only fall and the penalty only rises, so none can end better than
    its present log probability at the greatest length.

    Args:
        alive: log probabilities `(batch, beams)` of what has not ended, the best first.
        ended: scores `(batch, beams)` of what has.
        last_penalty: `length_penalty` of the greatest length.
    """
    return ops.any(alive[:, 0] / last_penalty > ops.min(ended, axis=1))


class BeamSearch(keras.Model):
    """The likeliest translations that are found with so many hypotheses at a time.

    Args:
        model: has the interface that `qanet.translation.transformer` describes.
        beams: hypotheses, and translations that are returned.
        length: most sub-words of a translation, the mark of the end included.
        alpha: of `length_penalty`.

    Input: `source`, int32 `(batch, source length)`. A score is the log probability
    divided by the length penalty.
    """

    def __init__(self, model, beams: int, length: int, alpha: float = 0.6):
        super().__init__()
        self.model = model
        self.beams = beams
        self.length = length
        self.alpha = alpha
        self.built = True

    def call(self, inputs):
        source = inputs["source"]
        rows, beams = source.shape[0], self.beams
        memory, state, tokens = _begun(self.model, source, beams, self.length)
        first = [0.0] + [IMPOSSIBLE] * (beams - 1)
        none = ops.full((rows, beams), IMPOSSIBLE, dtype="float32")
        alive = none * 0.0 + ops.convert_to_tensor(first, dtype="float32")

        def step(position, state, alive, tokens, ended, ended_tokens):
            gains, state = _gains(self.model, memory, state, tokens, position)
            pieces = gains.shape[-1]
            scores = alive[:, :, None] + gains
            # Twice as many as beams, so that enough remain where some of them end.
            scores, places = ops.top_k(ops.reshape(scores, (rows, -1)), 2 * beams)
            parents, added = places // pieces, ops.cast(places % pieces, "int32")
            grown = _with_column(_rows_of(tokens, parents), added, position)
            ends = ops.equal(added, END)
            # Only the first half may end, or one beam would not be greedy.
            may_end = ops.logical_and(ends, ops.arange(2 * beams) < beams)

            normal = scores / length_penalty(position + 1, self.alpha)
            ended = ops.concatenate(
                [ended, ops.where(may_end, normal, IMPOSSIBLE)], axis=1
            )
            ended_tokens = ops.concatenate([ended_tokens, grown], axis=1)
            ended, best = ops.top_k(ended, beams)
            ended_tokens = _rows_of(ended_tokens, best)

            alive, best = ops.top_k(ops.where(ends, IMPOSSIBLE, scores), beams)
            tokens = _rows_of(grown, best)
            parents = ops.take_along_axis(parents, best, axis=1)
            offsets = ops.arange(rows, dtype=parents.dtype)[:, None] * beams
            order = ops.reshape(parents + offsets, (-1,))
            state = keras.tree.map_structure(
                lambda x: ops.take(x, order, axis=0), state
            )
            return position + 1, state, alive, tokens, ended, ended_tokens

        _, _, alive, tokens, ended, ended_tokens = ops.while_loop(
            lambda position, state, alive, tokens, ended, ended_tokens: ops.logical_and(
                position < self.length,
                may_end_better(alive, ended, length_penalty(self.length, self.alpha)),
            ),
            step,
            (ops.zeros((), "int32"), state, alive, tokens, none, tokens),
        )
        # Rows where too few have ended are filled up with what has not.
        alive = alive / length_penalty(self.length, self.alpha) + UNFINISHED
        scores = ops.concatenate([ended, alive], axis=1)
        scores, best = ops.top_k(scores, beams)
        return _rows_of(ops.concatenate([ended_tokens, tokens], axis=1), best), scores


class Sampling(keras.Model):
    """Translations drawn by their probability.

    Args:
        model, length: as of `BeamSearch`.
        count: translations that are drawn.
        temperature: the logits are divided by it; below 1 likely ones come more often.

    Input: `source`, int32 `(batch, source length)`, and `seed`, uint32 `(batch,)`: a
    row's draws follow from its seed alone, whatever else is in the batch. A score is
    the log probability at this temperature, far less where it has not ended.
    """

    def __init__(self, model, count: int, length: int, temperature: float):
        super().__init__()
        self.model = model
        self.count = count
        self.length = length
        self.temperature = temperature
        self.built = True

    def call(self, inputs):
        source = inputs["source"]
        rows, count = source.shape[0], self.count
        seeds = ops.cast(inputs["seed"], "uint32")[:, None]
        memory, state, tokens = _begun(self.model, source, count, self.length)
        scores = ops.zeros((rows, count), dtype="float32")

        def step(position, state, tokens, scores, ended):
            gains, state = _gains(
                self.model, memory, state, tokens, position, self.temperature
            )
            pieces = gains.shape[-1]
            steps = ops.zeros_like(seeds) + ops.cast(position, "uint32")
            bits = hash_uniform_bits(
                ops.arange(count * pieces, dtype="int32")[None], (seeds, steps)
            )
            # Adding Gumbel noise and taking the maximum draws by probability. The
            # upper 23 bits, in the middle of their interval: never 0 and never 1.
            # Of 24 the greatest would be rounded to 1, whose noise is infinite.
            bits = ops.cast(ops.right_shift(bits, ops.cast(9, "uint32")), "float32")
            uniform = (bits + 0.5) / 2.0**23
            noise = ops.reshape(-ops.log(-ops.log(uniform)), (rows, count, pieces))
            drawn = ops.cast(ops.argmax(gains + noise, axis=2), "int32")
            gained = ops.take_along_axis(gains, drawn[:, :, None], axis=2)[:, :, 0]
            scores = scores + ops.where(ended, 0.0, gained)
            drawn = ops.where(ended, PADDING, drawn)
            tokens = _with_column(tokens, drawn, position)
            ended = ops.logical_or(ended, ops.equal(drawn, END))
            return position + 1, state, tokens, scores, ended

        _, _, tokens, scores, ended = ops.while_loop(
            lambda position, state, tokens, scores, ended: ops.logical_and(
                position < self.length, ops.logical_not(ops.all(ended))
            ),
            step,
            (
                ops.zeros((), "int32"),
                state,
                tokens,
                scores,
                ops.zeros((rows, count), dtype="bool"),
            ),
        )
        scores = scores + ops.where(ended, 0.0, UNFINISHED)
        scores, best = ops.top_k(scores, count)
        return _rows_of(tokens, best), scores


def _begun(model, source, count, length):
    """What `count` hypotheses of each row begin with: memory, state and no tokens."""
    # Each row as many times, one after the other.
    memory = keras.tree.map_structure(
        lambda x: ops.repeat(x, count, axis=0), model.encode(source)
    )
    tokens = ops.zeros((source.shape[0], count, length), dtype="int32")
    return memory, model.begin(memory, length), tokens


def _gains(model, memory, state, tokens, position, temperature=1.0):
    """The log probability of each next sub-word, after what the decoder has seen.

    Returns:
        float32 `(batch, count, sub-words)`, and the decoder's next state.
    """
    rows, count, _ = tokens.shape
    before = ops.take(tokens, ops.maximum(position - 1, 0), axis=2)
    last = ops.reshape(ops.where(position > 0, before, BEGIN), (rows * count,))
    logits, state = model.advance(memory, state, last, position)
    gains = _possible(ops.log_softmax(logits / temperature), position)
    return ops.reshape(gains, (rows, count, -1)), state


def _possible(log_probabilities, position):
    """Makes marks impossible that no translation holds, and one that is empty."""
    pieces = ops.arange(log_probabilities.shape[-1])
    # Below END are the marks of padding, of the unknown and of the beginning.
    forbidden = pieces < END + ops.cast(ops.equal(position, 0), pieces.dtype)
    return ops.where(forbidden, IMPOSSIBLE, log_probabilities)


def _rows_of(tokens, order):
    """`tokens[i, order[i, j]]` for all i and j."""
    return ops.take_along_axis(tokens, order[:, :, None], axis=1)


def _with_column(tokens, column, position):
    """`tokens` with `tokens[:, :, position]` replaced."""
    here = ops.equal(ops.arange(tokens.shape[2]), position)
    return ops.where(here, column[:, :, None], tokens)
