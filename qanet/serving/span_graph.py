"""From logits to ranked spans within a TensorFlow graph, as `qanet.decoding` does."""

import tensorflow as tf


def best_spans(
    logits: tf.Tensor, counts: tf.Tensor, limit: int, top_k: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The spans of tokens with the highest start logit plus end logit.

    Args:
        logits: float `(tokens, 2)`, start and end logits, the texts' tokens one after
            the other.
        counts: int32 `(texts,)`, tokens of each text.
        limit: the most tokens a span may have.
        top_k: int32 scalar, spans to return.

    Returns:
        Three tensors `(texts, top_k)`, best first: int32 first and last token of the
        span within its text, -1 where there are no more; float32 probability among all
        spans, and 0 there.
    """
    # A last text without tokens: TensorFlow cannot stack the results of none.
    counts = tf.concat([counts, [0]], axis=0)
    splits = tf.cumsum(tf.concat([[0], counts], axis=0))

    def spans_of(text):
        part = tf.cast(logits[splits[text] : splits[text + 1]], tf.float64)
        starts, ends = part[:, 0], part[:, 1]
        # sums[i, j] belongs to the span of tokens i to i + j.
        lowest = tf.constant(float("-inf"), tf.float64)
        padded = tf.pad(ends, [[0, limit - 1]], constant_values=lowest)
        lasts = tf.range(tf.size(starts))[:, None] + tf.range(limit)[None]
        sums = tf.reshape(starts[:, None] + tf.gather(padded, lasts), [-1])
        # Of equal sums the first comes first: the smaller start, then the smaller end.
        best, places = tf.math.top_k(sums, tf.minimum(top_k, tf.size(sums)))
        total = tf.reduce_sum(tf.exp(sums - tf.reduce_max(sums)))
        scores = tf.exp(best - tf.reduce_max(sums)) / total
        first = places // limit
        found = tf.math.is_finite(best)
        rest = [[0, top_k - tf.size(best)]]
        return (
            tf.pad(tf.where(found, first, -1), rest, constant_values=-1),
            tf.pad(
                tf.where(found, first + places % limit, -1), rest, constant_values=-1
            ),
            tf.pad(tf.cast(scores, tf.float32), rest),
        )

    numbers = tf.TensorSpec([None], tf.int32)
    first, last, scores = tf.map_fn(
        spans_of,
        tf.range(tf.size(counts)),
        fn_output_signature=(numbers, numbers, tf.TensorSpec([None], tf.float32)),
    )
    return first[:-1], last[:-1], scores[:-1]
