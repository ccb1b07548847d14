"""A bidirectional LSTM whose states are projected and clipped (Sak et al., 2014, as
in ELMo: Peters et al., 2018, section 3.4)."""

import functools

import keras
from keras import ops

from qanet.layers.bidirectional_lstm import in_blocks, loop, products, reverse
from qanet.layers.numerics import with_gradient, zero_padding

# Added to the forget gates, so that cells remember at first.
FORGET_BIAS = 1.0


@keras.saving.register_keras_serializable(package="qanet")
class ProjectedLSTM(keras.layers.Layer):
    """Reads each text forwards and backwards, each direction from vectors of its own.

    z = [x; h] W + b gives the gates i, f, o and the candidate j, in the order i, j, f,
    o;
    c' = clip(σ(f + 1) c + σ(i) tanh(j)), h' = clip((σ(o) tanh(c')) W_p).

    Both begin at zero. Weights are as the public ones of ELMo, so nothing is changed
    when these are read. What makes it fast is as in `BidirectionalLSTM`.

    Args:
        units: size of each direction's cell c.
        projection: size of each direction's state h.
        cell_clip: bound of the cell's numbers.
        projection_clip: bound of the state's numbers.

    Input: float tensor `(batch, length, 2 * width)`, what the forward direction reads
    and what the backward one reads, and boolean mask `(batch, length)`, true at first
    and then false.
    Output: float tensor `(batch, length, 2 * projection)`, zero at padding: the forward
    state and the backward one.
    """

    def __init__(self, units, projection, cell_clip=3.0, projection_clip=3.0, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.units = units
        self.projection = projection
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip

    def build(self, input_shape, *other_shapes):
        self.width = input_shape[-1] // 2
        size = 4 * self.units
        # Of each direction: first the rows of the input, then those of the state.
        self.kernel = self.add_weight(
            name="kernel",
            shape=(2, self.width + self.projection, size),
            initializer=in_blocks("glorot_uniform", 4),
        )
        self.bias = self.add_weight(name="bias", shape=(2, size), initializer="zeros")
        self.projection_kernel = self.add_weight(
            name="projection_kernel",
            shape=(2, self.units, self.projection),
            initializer=in_blocks("glorot_uniform", 1),
        )

    def call(self, x, mask, training=None):
        x = zero_padding(x, mask)
        batch, length, _ = ops.shape(x)
        forward, backward = ops.split(x, 2, axis=-1)
        both = ops.stack([forward, reverse(backward, mask)], axis=0)
        both = ops.reshape(both, (2, batch * length, self.width))
        kernel = ops.convert_to_tensor(self.kernel)
        bias = ops.expand_dims(ops.convert_to_tensor(self.bias), 1)
        z = ops.matmul(both, kernel[:, : self.width]) + bias
        z = ops.reshape(z, (2, batch, length, 4 * self.units))
        # (length, direction, batch, gates): the loop takes one step after the other.
        z = ops.transpose(ops.cast(z, "float32"), (2, 0, 1, 3))
        states_of = projected_lstm(self.cell_clip, self.projection_clip)
        h = with_gradient(states_of, training)(
            z,
            ops.cast(kernel[:, self.width :], "float32"),
            ops.cast(self.projection_kernel, "float32"),
        )
        forward, backward = ops.unstack(ops.transpose(h, (1, 2, 0, 3)), 2, axis=0)
        h = ops.concatenate([forward, reverse(backward, mask)], axis=-1)
        return zero_padding(ops.cast(h, x.dtype), mask)

    def compute_output_shape(self, input_shape, *other_shapes):
        return (*input_shape[:-1], 2 * self.projection)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "projection": self.projection,
            "cell_clip": self.cell_clip,
            "projection_clip": self.projection_clip,
        }


@functools.cache
def projected_lstm(cell_clip, projection_clip):
    """The states of LSTMs that start at zero.

    Args:
        cell_clip, projection_clip: bounds of cells and states.

    Returns:
        A function that brings its gradient, see `with_gradient`, and takes

        - z: float32 `(length, directions, batch, 4 * units)`, what the input gives to
          i, j, f, o of each step,
        - recurrent: float32 `(directions, width of a state, 4 * units)`,
        - projection: float32 `(directions, units, width of a state)`.

        Its result is float32 `(length, directions, batch, width of a state)`.
    """

    def states_of(z, recurrent, projection):
        units, width = projection.shape[1:]
        around = ops.shape(z)[1:3]
        nothing = ops.zeros((*around, width), "float32")
        empty = ops.zeros((*around, units), "float32")

        def forward(state, z):
            h, c = state
            i, j, f, o = ops.split(z + ops.matmul(h, recurrent), 4, axis=-1)
            i, f, o = ops.sigmoid(i), ops.sigmoid(f + FORGET_BIAS), ops.sigmoid(o)
            j = ops.tanh(j)
            c = ops.clip(f * c + i * j, -cell_clip, cell_clip)
            h = ops.matmul(o * ops.tanh(c), projection)
            h = ops.clip(h, -projection_clip, projection_clip)
            return (h, c), (h, c, ops.concatenate([i, j, f, o], axis=-1))

        widths = width, units, 4 * units
        states, cells, activations = loop(forward, (nothing, empty), z, widths)

        def gradient(upstream):
            from_gates = ops.transpose(recurrent, (0, 2, 1))
            from_state = ops.transpose(projection, (0, 2, 1))

            def backward(state, step):
                dz, dc = state
                dh, h, c, before, activation = step
                i, j, f, o = ops.split(activation, 4, axis=-1)
                dh = dh + ops.matmul(dz, from_gates)
                # What was clipped has no gradient.
                dh = ops.where(ops.abs(h) < projection_clip, dh, 0.0)
                dm = ops.matmul(dh, from_state)
                tanh = ops.tanh(c)
                dc = dc + dm * o * (1.0 - tanh * tanh)
                dc = ops.where(ops.abs(c) < cell_clip, dc, 0.0)
                dz = ops.concatenate(
                    [
                        dc * j * i * (1.0 - i),
                        dc * i * (1.0 - j * j),
                        dc * before * f * (1.0 - f),
                        dm * tanh * o * (1.0 - o),
                    ],
                    axis=-1,
                )
                return (dz, dc * f), (dz, dh)

            no_gates = ops.zeros((*around, 4 * units), "float32")
            before = ops.concatenate([empty[None], cells[:-1]], axis=0)
            steps = (upstream, states, cells, before, activations)
            start = (no_gates, empty)
            dz, dh = loop(backward, start, steps, (4 * units, width), backwards=True)
            # The matrices' gradients: all steps in one product.
            before = ops.concatenate([nothing[None], states[:-1]], axis=0)
            outputs = activations[..., 3 * units :] * ops.tanh(cells)
            return dz, products(before, dz), products(outputs, dh)

        return states, gradient

    return states_of
