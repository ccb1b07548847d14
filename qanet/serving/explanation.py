"""What an answer comes from: probabilities of its ends, and attention."""

from collections.abc import Callable
from functools import partial
from typing import Self

import numpy as np

from qanet.datasets.batches import reading_maker
from qanet.datasets.features import build_features
from qanet.datasets.plans import (
    PlannedBatch,
    plan_reading,
    plan_reading_any_shape,
)
from qanet.datasets.squad import Example
from qanet.datasets.windows import Windows, reading_windows
from qanet.models.limits import ReadingLimits
from qanet.models.registry import MODELS, with_attention
from qanet.reader import Predict, Reader
from qanet.run import TrainedModel
from qanet.serving.messages import Explained
from qanet.text.encoders import TextEncoder

# Digits that are told of a probability.
DIGITS = 4

# From windows and the tokens of their questions to the batches that read them.
Plan = Callable[[Windows, np.ndarray], list[PlannedBatch]]
AS_THEY_COME: Plan = partial(plan_reading_any_shape, batch_size=1)


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
        # Here, so that a reader of other logits needs no Keras.
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
        split = self.vocabulary.tokens
        examples = [Example("", question, passage, ())]
        features = build_features(examples, split)
        windows = reading_windows(features, np.arange(1), self.limits)
        maker = reading_maker(examples, features, self.vocabulary, windows)
        (batch,) = self.plan(windows, features.question_lengths)
        outputs = self.predict(maker.inputs(batch))
        passage_tokens = [list(span) for span in split(passage)[1]]
        question_tokens = [list(span) for span in split(question)[1]]
        n, m = len(passage_tokens), len(question_tokens)
        # Before the tokens there may be "no answer".
        first = outputs["start_logits"].shape[1] - batch.context_length
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
