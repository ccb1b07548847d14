"""What an answer comes from: probabilities of its ends, and attention."""

from functools import partial
from typing import Self

import numpy as np

from qanet.datasets.plans import plan_reading
from qanet.models.limits import ReadingLimits
from qanet.models.registry import MODELS, with_attention
from qanet.reader import AS_THEY_COME, Plan, Predict, Reader, inputs_of
from qanet.run import TrainedModel
from qanet.serving.messages import Explained
from qanet.text.encoders import TextEncoder

# Digits that are told of a probability.
DIGITS = 4


class Explainer:
    """Explains the answers of a reader.

    Args:
        predict: computes logits and `attention`, float `(batch, context_length,
            question_length)`, from a batch.
        vocabulary: the reader's.
        limits: how long texts it reads.
        plan: makes batches of the shapes that `predict` is to see.
    """

    def __init__(
        self,
        predict: Predict,
        vocabulary: TextEncoder,
        limits: ReadingLimits,
        plan: Plan = AS_THEY_COME,
    ):
        self.predict = predict
        self.vocabulary = vocabulary
        self.limits = limits
        self.plan = plan

    @classmethod
    def of(cls, trained: TrainedModel) -> Self:
        """Explains the answers of a trained model, which offers its attention."""
        # Here, since an ONNX export is read without Keras.
        from qanet.models.prediction import any_shape, prediction

        settings = trained.config.model
        model = with_attention(trained.model, settings)
        limits = MODELS[settings.name].limits
        if predict := any_shape(model):
            return cls(predict, trained.vocabulary, limits)
        # Each shape is compiled, so there are to be few.
        plan = partial(
            plan_reading,
            config=trained.config.data,
            batch_size=1,
            window=limits.window,
        )
        return cls(prediction(model), trained.vocabulary, limits, plan)

    def explain(self, question: str, passage: str) -> Explained:
        """Explains the answer to one question.

        Args:
            question: the question.
            passage: the passage, short enough to be read in one window.
        """
        outputs = self.predict(
            inputs_of(question, passage, self.vocabulary, self.limits, self.plan)
        )
        split = self.vocabulary.tokens
        passage_tokens = [list(span) for span in split(passage)[1]]
        question_tokens = [list(span) for span in split(question)[1]]
        n, m = len(passage_tokens), len(question_tokens)
        # Before the tokens there may be "no answer".
        first = outputs["start_logits"].shape[1] - outputs["attention"].shape[1]
        tokens = slice(first, first + n)
        return Explained(
            passage_tokens=passage_tokens,
            question_tokens=question_tokens,
            start=_softmax(outputs["start_logits"][0])[tokens],
            end=_softmax(outputs["end_logits"][0])[tokens],
            attention=_rounded(outputs["attention"][0, :n, :m]),
        )


def _softmax(logits: np.ndarray) -> list[float]:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return _rounded(weights / weights.sum())


def _rounded(values: np.ndarray) -> list:
    return np.round(np.asarray(values, np.float64), DIGITS).tolist()


def explainer_of(reader: Reader, model: TrainedModel | None) -> Explainer | None:
    """What explains a reader's answers; `None` where it does not tell its attention.

    Args:
        reader: the reader.
        model: what it computes with, where that is at hand.
    """
    if model and MODELS[model.config.model.name].attention:
        return Explainer.of(model)
    if reader.attends:
        return Explainer(reader.predict, reader.vocabulary, reader.limits)
    return None
