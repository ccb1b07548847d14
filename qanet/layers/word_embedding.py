"""Word embedding (QANet, section 2.2, "Input Embedding Layer")."""

import keras
from keras import ops

from qanet.layers.look_up import PADDING, STDDEV, UNKNOWN, look_up


@keras.saving.register_keras_serializable(package="qanet")
class WordEmbedding(keras.layers.Layer):
    """Looks rows of a vector table up.

    Row 0 is padding and stays zero. Row 1 is shared by all words without a vector
    and is always trained. The other rows are pretrained and frozen, unless
    `trainable_rows` is set.

    Args:
        rows: number of rows of the table, padding and unknown included.
        width: size of a vector.
        trainable_rows: train the whole table (for use without pretrained vectors).

    Input: integer tensor `(batch, length)` of row numbers.
    Output: float tensor `(batch, length, width)`.
    """

    def __init__(self, rows, width, trainable_rows=False, **kwargs):
        super().__init__(**kwargs)
        self.rows = rows
        self.width = width
        self.trainable_rows = trainable_rows

    def build(self, input_shape):
        self.table = self.add_weight(
            name="table",
            shape=(self.rows, self.width),
            initializer=keras.initializers.RandomNormal(stddev=STDDEV),
            trainable=self.trainable_rows,
            # In half precision rows are cast when they are found, not the whole table.
            autocast=False,
        )
        self.unknown = self.add_weight(
            name="unknown",
            shape=(self.width,),
            # At zero: words without a vector differ in their characters, and a large
            # part in common would hide that.
            initializer="zeros",
        )

    def load_table(self, table):
        """Sets the pretrained rows, a float array `(rows, width)`."""
        self.table.assign(table)

    @property
    def vectors(self):
        """The vector of each row, float tensor `(rows, width)`."""
        rows = ops.arange(self.rows)
        return self(rows[None])[0]

    def call(self, rows):
        if self.trainable_rows:
            vectors = look_up(ops.convert_to_tensor(self.table), rows)
        else:  # There is no gradient, and the table may be large.
            vectors = ops.take(self.table, rows, axis=0)
        vectors = ops.cast(vectors, self.compute_dtype)
        column = ops.expand_dims(rows, -1)
        vectors = ops.where(
            column == UNKNOWN, ops.convert_to_tensor(self.unknown), vectors
        )
        return ops.where(column == PADDING, ops.zeros((), dtype=vectors.dtype), vectors)

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.width)

    def get_config(self):
        return {
            **super().get_config(),
            "rows": self.rows,
            "width": self.width,
            "trainable_rows": self.trainable_rows,
        }
