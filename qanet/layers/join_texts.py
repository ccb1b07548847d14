"""Question and context in one sequence (BERT: Devlin et al., 2019, section 4.2)."""

import keras
from keras import ops

from qanet.layers.look_up import PADDING


def context_places(question, context):
    """The places of a context's pieces in a joined sequence, as a slice.

    Args:
        question: integers `(batch, question length)`.
        context: integers `(batch, context length)`.
    """
    begin = ops.shape(question)[1] + 2
    return slice(begin, begin + ops.shape(context)[1])


def question_places(question):
    """The places of a question's pieces in a joined sequence, as a slice."""
    return slice(1, 1 + ops.shape(question)[1])


@keras.saving.register_keras_serializable(package="qanet")
class JoinTexts(keras.layers.Layer):
    """[CLS] question [SEP] context [SEP], with padding where the texts have it.

    Attention does not see an order, so padding may stand within: what is read is the
    same as without it, for positions count real pieces alone.

    Args:
        cls_id: number of the piece [CLS].
        sep_id: number of the piece [SEP].

    Input: integers `(batch, question length)` and `(batch, context length)`, 0 at
    padding.
    Output: integers `(batch, question length + context length + 3)`: pieces; positions,
    which count from 0; segments, 0 up to the first [SEP] and 1 after it; and where
    pieces are real, boolean.
    """

    def __init__(self, cls_id, sep_id, **kwargs):
        super().__init__(**kwargs)
        self.cls_id = cls_id
        self.sep_id = sep_id

    def call(self, question, context):
        rows = (ops.shape(question)[0], 1)
        cls, sep = (
            ops.full(rows, number, dtype="int32")
            for number in (self.cls_id, self.sep_id)
        )
        pieces = ops.concatenate([cls, question, sep, context, sep], axis=1)
        real = ops.not_equal(pieces, PADDING)
        counted = ops.cumsum(ops.cast(real, "int32"), axis=1)
        segments = ops.concatenate(
            [
                ops.zeros_like(ops.concatenate([cls, question, sep], axis=1)),
                ops.ones_like(ops.concatenate([context, sep], axis=1)),
            ],
            axis=1,
        )
        return pieces, ops.maximum(counted - 1, 0), segments, real

    def compute_output_spec(self, question, context):
        length = None
        if None not in (question.shape[1], context.shape[1]):
            length = question.shape[1] + context.shape[1] + 3
        shape = (question.shape[0], length)
        integers = [keras.KerasTensor(shape, dtype="int32") for _ in range(3)]
        return (*integers, keras.KerasTensor(shape, dtype="bool"))

    def get_config(self):
        return {
            **super().get_config(),
            "cls_id": self.cls_id,
            "sep_id": self.sep_id,
        }
