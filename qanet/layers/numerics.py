"""Masking and softmax that hold in every dtype and on every backend.

A mask is a boolean tensor, true at real positions. It is derived from lengths and
travels explicitly from layer to layer.
"""

import functools

from keras import ops

# Takes the place of a masked logit. Finite, so that a row that is masked throughout
# gives numbers instead of NaN; it has a place in float16 too.
MASKED_LOGIT = -3e4


def mask_logits(logits, mask):
    """Replaces masked logits by a large negative number.

    Args:
        logits: float tensor.
        mask: boolean tensor that broadcasts to `logits`, true where real.

    Returns:
        float32 tensor of the shape of `logits`.
    """
    return ops.where(mask, ops.cast(logits, "float32"), MASKED_LOGIT)


def masked_softmax(logits, mask, axis=-1):
    """Softmax over the real positions of one axis, computed in float32.

    Args:
        logits: float tensor.
        mask: boolean tensor that broadcasts to `logits`, true where real.
        axis: the axis that sums to one.

    Returns:
        Tensor of the shape and dtype of `logits`.
    """
    masked = mask_logits(logits, mask)
    # The shift cancels, so its gradient is zero and need not be formed. Written out
    # because Keras' own warns where the axis has a single entry.
    highest = ops.stop_gradient(ops.max(masked, axis=axis, keepdims=True))
    weights = ops.exp(masked - highest)
    weights = weights / ops.sum(weights, axis=axis, keepdims=True)
    return ops.cast(weights, logits.dtype)


def softmax_both_ways(similarity, context_mask, question_mask):
    """Softmax of each row and of each column of a similarity.

    Args:
        similarity: float tensor `(batch, n, m)`, of words of a context and a question.
        context_mask, question_mask: boolean tensors `(batch, n)` and `(batch, m)`.

    Returns:
        The softmax over the question and that over the context, `(batch, n, m)` each.
    """
    return (
        masked_softmax(similarity, question_mask[:, None, :], axis=2),
        masked_softmax(similarity, context_mask[:, :, None], axis=1),
    )


def zero_padding(x, mask):
    """Sets the vectors at padded positions to zero.

    Args:
        x: float tensor `(batch, length, width)`.
        mask: boolean tensor `(batch, length)`.
    """
    return ops.where(ops.expand_dims(mask, -1), x, ops.zeros((), dtype=x.dtype))


def with_gradient(function, training):
    """A function that brings its own gradient, or in prediction the function alone.

    TensorFlow keeps a gradient that is given, and with it the graph that it was given
    in, as long as the process lives: too long for a reader that is replaced.

    Args:
        function: gives its result and a function that gives its gradient, as
            `keras.ops.custom_gradient` takes it; it is kept, so the same each time.
        training: false where nobody will ask for the gradient.
    """
    if training is False:
        return lambda *tensors: function(*tensors)[0]
    return _with_gradient(function)


@functools.cache
def _with_gradient(function):
    # Once a function: JAX compiles anew what stands in another one.
    return ops.custom_gradient(function)
