"""Word and character embeddings (QANet, section 2.2, "Input Embedding Layer")."""

import keras
from keras import ops

from qanet.layers.dropout import drop_types

PADDING = 0
UNKNOWN = 1

# Deviation of the first values, of the size of GloVe's numbers.
START = 0.5


def look_up_small(table, rows):
    """Looks rows of a small table up: on accelerators by a product.

    The gradient of a look-up adds a row for each place of the text. On a GPU those of
    one character, many thousands, wait for each other to be added, and in bfloat16 such
    a sum loses its small terms. The gradient of a product is a product.

    Args:
        table: float tensor `(size, width)`.
        rows: integer tensor of any shape, from 0 to size - 1.

    Returns:
        Float tensor of the shape of `rows` and the width.
    """
    if keras.backend.backend() == "jax":
        import jax

        return jax.lax.platform_dependent(table, rows, cpu=_take, default=_multiply)
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        devices = {device.device_type for device in tf.config.list_logical_devices()}
        if devices & {"GPU", "TPU"}:
            return _multiply(table, rows)
    return _take(table, rows)


def _take(table, rows):
    return ops.take(table, rows, axis=0)


def _multiply(table, rows):
    return ops.matmul(ops.one_hot(rows, table.shape[0], dtype=table.dtype), table)


@keras.saving.register_keras_serializable(package="qanet")
class WordEmbedding(keras.layers.Layer):
    """Looks rows of a vector table up.

    Row 0 is padding and stays zero. Row 1 is shared by all words without a vector
    and is always trained. The other rows are pretrained and frozen, unless
    `trainable_rows` is set; the first `tuned_rows` of them are added to by vectors that
    are trained and start at zero (DrQA: Chen et al., 2017, section 3.2).

    Args:
        rows: number of rows of the table, padding and unknown included.
        width: size of a vector.
        trainable_rows: train the whole table (for use without pretrained vectors).
        type_dropout: probability that a row is dropped in a training step, at all its
            places; the words without a vector, which share a row, fall together.
        tuned_rows: rows after padding and unknown whose vectors are trained further.

    Input: integer tensor `(batch, length)` of row numbers; for `type_dropout` also a
    seed, uint32 `(2,)`. Calls with equal seeds drop the same rows.
    Output: float tensor `(batch, length, width)`.
    """

    def __init__(
        self,
        rows,
        width,
        trainable_rows=False,
        type_dropout=0.0,
        tuned_rows=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.rows = rows
        self.width = width
        self.trainable_rows = trainable_rows
        self.type_dropout = type_dropout
        self.tuned_rows = tuned_rows

    def build(self, input_shape):
        self.table = self.add_weight(
            name="table",
            shape=(self.rows, self.width),
            initializer=keras.initializers.RandomNormal(stddev=START),
            trainable=self.trainable_rows,
        )
        self.unknown = self.add_weight(
            name="unknown",
            shape=(self.width,),
            # At zero: words without a vector differ in their characters, and a large
            # part in common would hide that.
            initializer="zeros",
        )
        if self.tuned_rows:
            self.tuning = self.add_weight(
                name="tuning", shape=(self.tuned_rows, self.width), initializer="zeros"
            )

    def load_table(self, table):
        """Sets the pretrained rows, a float array `(rows, width)`."""
        self.table.assign(table)

    def call(self, rows, seed=None, training=False):
        vectors = ops.take(self.table, rows, axis=0)
        if self.tuned_rows:
            vectors = vectors + self._tuning_of(rows)
        column = ops.expand_dims(rows, -1)
        vectors = ops.where(
            column == UNKNOWN, ops.convert_to_tensor(self.unknown), vectors
        )
        if training and self.type_dropout:
            vectors = drop_types(vectors, rows, self.type_dropout, seed)
        return ops.where(column == PADDING, ops.zeros((), dtype=vectors.dtype), vectors)

    def _tuning_of(self, rows):
        """What training adds to the vectors of these rows."""
        numbers = rows - UNKNOWN
        tuned = ops.logical_and(numbers > 0, numbers <= self.tuned_rows)
        # Row 0, which is zero, for all others.
        table = ops.pad(ops.convert_to_tensor(self.tuning), ((1, 0), (0, 0)))
        return look_up_small(table, ops.where(tuned, numbers, 0))

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.width)

    def get_config(self):
        return {
            **super().get_config(),
            "rows": self.rows,
            "width": self.width,
            "trainable_rows": self.trainable_rows,
            "type_dropout": self.type_dropout,
            "tuned_rows": self.tuned_rows,
        }


@keras.saving.register_keras_serializable(package="qanet")
class CharacterEmbedding(keras.layers.Layer):
    """One vector a word from its characters: embed, convolve, take the maximum.

    The paper's text takes the maximum of the character vectors themselves
    (`kernel_size=1` and no filters); most implementations convolve first. The
    convolution never runs across words, and padding takes part in neither the
    convolution nor the maximum.

    The convolution is computed as a sum of look-ups: a character's vector times one
    column of the kernel depends on the character alone, so the products are formed
    once per character of the alphabet instead of once per character of the text.

    Args:
        characters: size of the alphabet, padding and unknown included.
        width: size of a character vector.
        filters: size of the output; 0 takes the maximum of the character vectors.
        kernel_size: characters that a filter sees.
        type_dropout: probability that a character's vector is dropped in a training
            step, in all words.

    Input: integer tensor `(batch, length, characters_per_word)`; for `type_dropout`
    also a seed, uint32 `(2,)`. Calls with equal seeds drop the same characters.
    Output: float tensor `(batch, length, filters or width)`.
    """

    def __init__(
        self,
        characters,
        width,
        filters=0,
        kernel_size=5,
        type_dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.characters = characters
        self.width = width
        self.filters = filters
        self.kernel_size = kernel_size
        self.type_dropout = type_dropout

    def build(self, input_shape):
        self.table = self.add_weight(
            name="table",
            shape=(self.characters, self.width),
            initializer=keras.initializers.RandomNormal(stddev=START),
        )
        if self.filters:
            self.kernel = self.add_weight(
                name="kernel",
                shape=(self.kernel_size, self.width, self.filters),
                initializer="glorot_uniform",
            )
            # The largest of several normal variables lies about 1.3 deviations above
            # their mean. Starting there leaves what tells words apart.
            deviation = START * (2 * self.width / (self.width + self.filters)) ** 0.5
            self.bias = self.add_weight(
                name="bias",
                shape=(self.filters,),
                initializer=keras.initializers.Constant(-1.3 * deviation),
            )

    def call(self, characters, seed=None, training=False):
        table = ops.convert_to_tensor(self.table)
        if training and self.type_dropout:
            types = ops.arange(self.characters)
            table = drop_types(table, types, self.type_dropout, seed)
        real = ops.expand_dims(characters != PADDING, -1)
        if self.filters:
            x = self._convolve(table, characters)
        else:
            x = look_up_small(table, characters)
        lowest = ops.cast(-3e4, x.dtype)
        x = ops.max(ops.where(real, x, lowest), axis=2)
        # A word without characters (padding) has no maximum.
        return ops.where(ops.any(real, axis=2), x, ops.zeros((), dtype=x.dtype))

    def _convolve(self, table, characters):
        size = ops.shape(characters)[2]
        known = ops.cast(ops.arange(self.characters) != PADDING, table.dtype)
        table = table * ops.expand_dims(known, -1)
        before = (self.kernel_size - 1) // 2
        padding = (before, self.kernel_size - 1 - before)
        padded = ops.pad(characters, ((0, 0), (0, 0), padding))
        x = self.bias
        for column in range(self.kernel_size):
            products = ops.matmul(table, self.kernel[column])
            x = x + look_up_small(products, padded[:, :, column : column + size])
        return x

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.filters or self.width)

    def get_config(self):
        return {
            **super().get_config(),
            "characters": self.characters,
            "width": self.width,
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "type_dropout": self.type_dropout,
        }
