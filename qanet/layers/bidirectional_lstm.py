"""A bidirectional LSTM of one fast loop (Hochreiter, Schmidhuber, 1997; with
forget gates: Gers et al., 2000)."""

import keras
from keras import ops

from qanet.layers.numerics import with_gradient, zero_padding


def in_blocks(name, count):
    """An initializer that draws blocks of the last axis one by one.

    Each gate's matrix is drawn for its own size, not for that of the wide matrix that
    holds them all. Of a tensor with three axes, each matrix along the first is drawn by
    itself.

    Args:
        name: the initializer of a block.
        count: number of blocks.
    """

    def draw(shape, dtype=None):
        if len(shape) == 3:
            return ops.stack([draw(shape[1:], dtype) for _ in range(shape[0])])
        block = (*shape[:-1], shape[-1] // count)
        # A new one each time: one alone would draw the same again.
        blocks = [keras.initializers.get(name)(block, dtype) for _ in range(count)]
        return ops.concatenate(blocks, axis=-1)

    return draw


def forget_gate_bias(shape, dtype=None):
    """Biases of two directions: 1 for the forget gates (Jozefowicz et al., 2015)."""
    units = shape[0] // 8
    gates = ops.repeat(ops.cast([0.0, 1.0, 0.0, 0.0], dtype), units)
    return ops.concatenate([gates, gates])


@keras.saving.register_keras_serializable(package="qanet")
class BidirectionalLSTM(keras.layers.Layer):
    """Reads each text forwards and backwards.

    z = x W + R h + b gives the gates i, f, o and the candidate g;
    c' = σ(f) c + σ(i) tanh(g), h' = σ(o) tanh(c').

    What makes it fast: x W of all steps and both directions is one product before the
    loop, the two directions take their steps in one loop, and the gradient, written
    here, forms that of R in one product after the loop instead of adding up a product
    a step.

    Args:
        units: size of each direction's state.

    Input: float tensor `(batch, length, width)` and boolean mask `(batch, length)`,
    true at first and then false.
    Output: float tensor `(batch, length, 2 * units)`, zero at padding: the forward
    state and the backward one.
    """

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.units = units

    def build(self, input_shape):
        size = 4 * self.units
        self.kernel = self.add_weight(
            name="kernel",
            shape=(input_shape[-1], 2 * size),
            initializer=in_blocks("glorot_uniform", 8),
        )
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel",
            shape=(2, self.units, size),
            initializer=in_blocks("orthogonal", 4),
        )
        self.bias = self.add_weight(
            name="bias", shape=(2 * size,), initializer=forget_gate_bias
        )

    def call(self, x, mask, training=None):
        x = zero_padding(x, mask)
        batch, length, _ = ops.shape(x)
        z = ops.matmul(x, self.kernel) + self.bias
        z = ops.cast(ops.reshape(z, (batch, length, 2, 4 * self.units)), "float32")
        z = ops.stack([z[:, :, 0], reverse(z[:, :, 1], mask)], axis=0)
        # (length, direction, batch, gates): the loop takes one step after the other.
        z = ops.transpose(z, (2, 0, 1, 3))
        recurrent = ops.cast(self.recurrent_kernel, "float32")
        h = with_gradient(lstm, training)(z, recurrent)
        forward, backward = ops.unstack(ops.transpose(h, (1, 2, 0, 3)), 2, axis=0)
        h = ops.concatenate([forward, reverse(backward, mask)], axis=-1)
        return zero_padding(ops.cast(h, x.dtype), mask)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], 2 * self.units)

    def get_config(self):
        return {**super().get_config(), "units": self.units}


def reverse(x, mask):
    """The real vectors of each text in reverse order, its padding where it was.

    Args:
        x: tensor `(batch, length, width)`.
        mask: boolean tensor `(batch, length)`, true at first and then false.
    """
    places = ops.arange(ops.shape(x)[1], dtype="int32")
    lengths = ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True)
    places = ops.where(places < lengths, lengths - 1 - places, places)
    return ops.take_along_axis(x, ops.expand_dims(places, -1), axis=1)


def lstm(z, recurrent):
    """The states of LSTMs that start at zero.

    Args:
        z: float32 `(length, directions, batch, 4 * units)`, what the input gives to the
            gates i, f, o and the candidate g of each step.
        recurrent: float32 `(directions, units, 4 * units)`.

    Returns:
        float32 `(length, directions, batch, units)`, and its gradient, see
        `with_gradient`.
    """
    units = recurrent.shape[1]
    start = ops.zeros((*ops.shape(z)[1:3], units), "float32")

    def forward(state, z):
        h, c = state
        z = z + ops.matmul(h, recurrent)
        gates = ops.sigmoid(z[..., : 3 * units])
        i, f, o = ops.split(gates, 3, axis=-1)
        g = ops.tanh(z[..., 3 * units :])
        c = f * c + i * g
        h = o * ops.tanh(c)
        return (h, c), (h, c, ops.concatenate([gates, g], axis=-1))

    widths = units, units, 4 * units
    states, cells, activations = loop(forward, (start, start), z, widths)

    def gradient(upstream):
        transposed = ops.transpose(recurrent, (0, 2, 1))
        before = ops.concatenate([start[None], cells[:-1]], axis=0)

        def backward(state, step):
            dz, dc = state
            dh, cell, previous, activation = step
            i, f, o, g = ops.split(activation, 4, axis=-1)
            dh = dh + ops.matmul(dz, transposed)
            tanh = ops.tanh(cell)
            dc = dc + dh * o * (1.0 - tanh * tanh)
            dz = ops.concatenate(
                [
                    dc * g * i * (1.0 - i),
                    dc * previous * f * (1.0 - f),
                    dh * tanh * o * (1.0 - o),
                    dc * i * (1.0 - g * g),
                ],
                axis=-1,
            )
            return (dz, dc * f), (dz,)

        nothing = ops.zeros((*ops.shape(z)[1:3], 4 * units), "float32")
        steps = (upstream, cells, before, activations)
        (dz,) = loop(backward, (nothing, start), steps, (4 * units,), backwards=True)
        # The states before each step times its gradient, all steps in one product.
        return dz, products(ops.concatenate([start[None], states[:-1]], axis=0), dz)

    return states, gradient


def products(x, d):
    """Σ x^T d over steps and texts, for each direction.

    Args:
        x, d: float32 `(length, directions, batch, width)`.

    Returns:
        float32 `(directions, width of x, width of d)`.
    """
    x, d = (
        ops.reshape(ops.transpose(y, (1, 0, 2, 3)), (y.shape[1], -1, y.shape[3]))
        for y in (x, d)
    )
    return ops.matmul(ops.transpose(x, (0, 2, 1)), d)


def loop(step, state, inputs, widths, backwards=False):
    """Takes a step for each entry of the inputs' first axis, in order or from the end.

    It has no gradient of its own.

    Args:
        step: from state and input to the next state and a tuple of outputs.
        state: tuple of tensors.
        inputs: a tensor or tuple of tensors with the same first axis.
        widths: size of the last axis of each output; the others are those of the state.
        backwards: from the end.

    Returns:
        The outputs, stacked in the order of the inputs.
    """
    if keras.backend.backend() == "jax":
        import jax

        return jax.lax.scan(step, state, inputs, reverse=backwards)[1]
    import tensorflow as tf

    inputs = tf.nest.map_structure(tf.convert_to_tensor, inputs)
    length = tf.shape(tf.nest.flatten(inputs)[0])[0]

    def at(number):
        return tf.nest.map_structure(lambda x: x[number], inputs)

    # LiteRT must know the shape of what a step gives.
    shape = state[0].shape[:-1]
    arrays = tuple(
        tf.TensorArray("float32", size=length, element_shape=(*shape, width))
        for width in widths
    )

    def body(count, state, arrays):
        number = length - 1 - count if backwards else count
        state, made = step(state, at(number))
        pairs = zip(arrays, made, strict=True)
        return count + 1, state, tuple(array.write(number, x) for array, x in pairs)

    _, _, arrays = tf.while_loop(
        lambda count, *_: count < length, body, (0, state, arrays)
    )
    return tuple(array.stack() for array in arrays)
