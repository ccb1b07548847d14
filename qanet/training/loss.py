"""Losses: of a span's start or end, with and without a teacher, and of sub-words."""

from keras import ops

from qanet.layers.look_up import PADDING
from qanet.layers.numerics import MASKED_LOGIT


def span_loss(target, logits):
    """-log p of the marked token, where p is the softmax of the logits.

    QANet, section 2.2, the output layer's loss for the start or the end.

    Args:
        target: float tensor `(batch, context_length)`, one at the marked token and
            zero elsewhere; `BatchMaker.targets` makes them.
        logits: float tensor of the same shape.

    Returns:
        float32 tensor `(batch,)`.
    """
    logits, target = ops.cast(logits, "float32"), ops.cast(target, "float32")
    return ops.logsumexp(logits, axis=-1) - ops.sum(target * logits, axis=-1)


def distillation_loss(target, teacher, logits, share: float, temperature: float):
    """(1 - α) `span_loss` + α T² KL(softmax(teacher / T) || softmax(logits / T)).

    Knowledge distillation (Hinton et al., 2015, section 2); T² keeps the size of its
    gradient. An example of which the teacher says nothing has `span_loss` alone.

    Args:
        target: float tensor `(batch, context_length)`, see `span_loss`.
        teacher: float tensor of the same shape, logarithms of its probabilities; -inf
            where they are 0.
        logits: float tensor of the same shape, the student's.
        share: α.
        temperature: T.

    Returns:
        float32 tensor `(batch,)`.
    """
    teacher, logits = ops.cast(teacher, "float32"), ops.cast(logits, "float32")
    known = teacher > MASKED_LOGIT
    # Finite everywhere: a gradient through infinity is no number.
    teacher = ops.where(known, teacher, MASKED_LOGIT)
    log_p = ops.log_softmax(teacher / temperature, axis=-1)
    p = ops.where(known, ops.exp(log_p), 0.0)
    log_q = ops.log_softmax(logits / temperature, axis=-1)
    divergence = ops.sum(p * (log_p - log_q), axis=-1)
    share = share * ops.cast(ops.any(known, axis=-1), "float32")
    marked = span_loss(target, logits)
    return (1.0 - share) * marked + share * temperature**2 * divergence


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
