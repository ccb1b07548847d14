"""From logits to ranked spans within a TensorFlow graph, as `qanet.decoding` does."""

import tensorflow as tf


def best_spans(
    logits: tf.Tensor,
    no_answer: tf.Tensor,
    counts: tf.Tensor,
    limit: int,
    threshold: float,
    top_k: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The spans of tokens with the highest start logit plus end logit.

    Args:
        logits: float `(tokens, 2)`, start and end logits, the texts' tokens one after
            the other.
        no_answer: float `(texts,)`, logits of there being no answer; -inf where the
            model cannot tell.
        counts: int32 `(texts,)`, tokens of each text.
        limit: the most tokens a span may have.
        threshold: the probability of no answer above which that comes first; otherwise
            the best span does.
        top_k: int32 scalar, spans to return.

    Returns:
        Three tensors `(texts, top_k)`, best first: int32 first and last token of the
        span within its text, -1 for no answer and where there are no more; float32
        probability among all spans and no answer.
    """
    # A last text without tokens: TensorFlow cannot stack the results of none.
    counts = tf.concat([counts, [0]], axis=0)
    no_answer = tf.concat([no_answer, [float("-inf")]], axis=0)
    splits = tf.cumsum(tf.concat([[0], counts], axis=0))

    def spans_of(text):
        part = logits[splits[text] : splits[text + 1]]
        return _spans_of(part, no_answer[text], limit, threshold, top_k)

    numbers = tf.TensorSpec([None], tf.int32)
    first, last, scores = tf.map_fn(
        spans_of,
        tf.range(tf.size(counts)),
        fn_output_signature=(numbers, numbers, tf.TensorSpec([None], tf.float32)),
    )
    return first[:-1], last[:-1], scores[:-1]


def _spans_of(
    logits: tf.Tensor,
    no_answer: tf.Tensor,
    limit: int,
    threshold: float,
    top_k: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """As `best_spans`, of one text: `(tokens, 2)` and a scalar, three of `(top_k,)`."""
    logits, none = tf.cast(logits, tf.float64), tf.cast(no_answer, tf.float64)
    starts, ends = logits[:, 0], logits[:, 1]
    # sums[i, j] belongs to the span of tokens i to i + j.
    lowest = tf.constant(float("-inf"), tf.float64)
    padded = tf.pad(ends, [[0, limit - 1]], constant_values=lowest)
    lasts = tf.range(tf.size(starts))[:, None] + tf.range(limit)[None]
    sums = tf.reshape(starts[:, None] + tf.gather(padded, lasts), [-1])
    # Of equal sums the first comes first: the smaller start, then the smaller end.
    best, places = tf.math.top_k(sums, tf.minimum(top_k, tf.size(sums)))
    found = tf.math.is_finite(best)
    first = tf.where(found, places // limit, -1)
    last = tf.where(found, first + places % limit, -1)

    peak = tf.maximum(tf.reduce_max(sums), none)
    total = tf.reduce_sum(tf.exp(sums - peak)) + tf.exp(none - peak)
    # Without a token and without "no answer" nothing has a probability.
    none_score = tf.where(total > 0, tf.exp(none - peak) / total, 0)
    first, last = tf.concat([first, [-1]], 0), tf.concat([last, [-1]], 0)
    scores = tf.concat([tf.exp(best - peak) / total, [none_score]], 0)

    # No answer takes its place among the spans, by their logits, which are exact;
    # but above the threshold it comes first, and otherwise the best span does.
    spans = tf.size(best)
    leader = tf.where(none_score > threshold, spans, 0)
    rank = tf.concat([best, [none]], 0)
    rank = tf.where(tf.equal(tf.range(1 + spans), leader), -lowest, rank)
    order = tf.math.top_k(rank, tf.minimum(top_k, tf.size(rank))).indices
    rest = [[0, top_k - tf.size(order)]]
    return (
        tf.pad(tf.gather(first, order), rest, constant_values=-1),
        tf.pad(tf.gather(last, order), rest, constant_values=-1),
        tf.pad(tf.cast(tf.gather(scores, order), tf.float32), rest),
    )
