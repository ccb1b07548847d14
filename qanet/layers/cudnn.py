"""cuDNN's bidirectional LSTM, through JAX on an NVIDIA GPU."""

import keras
from keras import ops


def has_cudnn() -> bool:
    """Whether JAX computes on one NVIDIA GPU.

    On several, JAX would not share the kernel's batch out among them.
    """
    if keras.backend.backend() != "jax":
        return False
    import jax

    if jax.default_backend() != "gpu" or jax.device_count() > 1:
        return False
    return "cuda" in jax.devices()[0].client.platform_version.lower()


def cudnn_lstm(x, lengths, kernel, recurrent, bias):
    """The states of two LSTMs that start at zero, one for each direction.

    As in the rest of JAX, products in single precision take numbers of 19 bits (TF32)
    unless `jax_default_matmul_precision` says otherwise.

    Args:
        x: float32 `(batch, length, width)`.
        lengths: int32 `(batch,)`, how many vectors of each text are read.
        kernel: float32 `(width, 8 * units)`: for each direction the gates i, f, o and
            the candidate g.
        recurrent: float32 `(2, units, 4 * units)`.
        bias: float32 `(8 * units,)`.

    Returns:
        float32 `(batch, length, 2 * units)`: the forward state and the backward one.
    """
    from jax.experimental import rnn

    units = recurrent.shape[1]
    start = ops.zeros((2, x.shape[0], units), "float32")
    states, _, _ = rnn.lstm(
        x,
        start,
        start,
        packed_weights(kernel, recurrent, bias),
        # It refuses empty texts.
        ops.maximum(lengths, 1),
        input_size=x.shape[2],
        hidden_size=units,
        num_layers=1,
        dropout=0.0,
        bidirectional=True,
    )
    return states


def packed_weights(kernel, recurrent, bias):
    """The weights as cuDNN has them, all in one vector.

    First the matrices of each direction, that of the input and that of the state, one
    row for each of the gates i, f, the candidate g and the gate o; then two biases of
    each direction, which are added up: ours and zeros.
    """

    def rows(matrix):
        i, f, o, g = ops.split(ops.transpose(matrix), 4, axis=0)
        return ops.ravel(ops.concatenate([i, f, g, o], axis=0))

    matrices = [
        rows(matrix)
        for pair in zip(
            ops.split(kernel, 2, axis=1), ops.unstack(recurrent, 2), strict=True
        )
        for matrix in pair
    ]
    biases = [
        half for own in ops.split(bias, 2) for half in (rows(own), ops.zeros_like(own))
    ]
    return ops.concatenate([*matrices, *biases])
