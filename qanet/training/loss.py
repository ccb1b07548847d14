"""The losses: of an answer's start or end, and of a sub-word."""

from keras import ops

from qanet.layers.look_up import PADDING


def span_loss(weights, logits):
    """-log Σ_i w_i p_i, where p is the softmax of the logits.

    With all weight on one token that is the cross-entropy. In general w_i is the
    probability that a token that is i in truth was marked as this example is:
    "forward correction" (Patrini et al., 2017).

    Args:
        weights: float tensor `(batch, context_length)`, at least one of a row above
            zero; `BatchMaker.targets` makes them.
        logits: float tensor of the same shape.

    Returns:
        float32 tensor `(batch,)`.
    """
    logits, weights = ops.cast(logits, "float32"), ops.cast(weights, "float32")
    # The logarithm of weight 0 is -inf, which takes no part in sum and gradient.
    marked = logits + ops.log(weights)
    return ops.logsumexp(logits, axis=-1) - ops.logsumexp(marked, axis=-1)


def smoothed_cross_entropy(target, logits, smoothing: float):
    """Sum over the sub-words of -Σ_i q_i log p_i, and their number.

    q has `1 - smoothing` on the right sub-word and shares the rest among all alike
    (Szegedy et al., 2016, section 7). Padding does not count.

    Args:
        target: int32 `(batch, length)`.
        logits: float `(batch, length, pieces)`.
        smoothing: what is shared.
    """
    total = ops.logsumexp(logits, axis=-1)
    right = ops.take_along_axis(logits, target[..., None], axis=-1)[..., 0]
    loss = total - right
    if smoothing:
        uniform = total - ops.mean(logits, axis=-1)
        loss = (1.0 - smoothing) * loss + smoothing * uniform
    real = ops.cast(ops.not_equal(target, PADDING), loss.dtype)
    return ops.sum(loss * real), ops.sum(real)
