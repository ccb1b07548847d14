"""The loss of an answer's start or end, which allows for answers marked wrongly."""

from keras import ops


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
