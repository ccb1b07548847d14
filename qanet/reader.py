"""The public way to ask a trained model: `Reader.load(run).answer(question, context)`.

The command line, the evaluation and the training all read through this class.
"""

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np

from qanet import shipped
from qanet.config import Config
from qanet.console import log, printable, progress_bar
from qanet.datasets.batches import BatchMaker, reading_maker
from qanet.datasets.features import Features, build_features
from qanet.datasets.plans import (
    ALIKE,
    PlannedBatch,
    plan_reading,
    plan_reading_any_shape,
)
from qanet.datasets.squad import Example
from qanet.datasets.windows import Windows, reading_windows
from qanet.decoding import (
    Answer,
    ContextLogits,
    Spans,
    decide,
    join_windows,
    rank_answers,
    spans_of_context,
    split_no_answer,
)
from qanet.errors import UserError
from qanet.models.limits import ReadingLimits
from qanet.models.registry import MODELS
from qanet.onnx_reader import is_export, load_export
from qanet.run import DEFAULT_THRESHOLD, Run, TrainedModel
from qanet.text.encoders import TextEncoder

# Computes a model's outputs from a batch of its inputs.
Predict = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]

# From windows and the tokens of their questions to the batches that read them.
Plan = Callable[[Windows, np.ndarray], list[PlannedBatch]]
AS_THEY_COME: Plan = partial(plan_reading_any_shape, batch_size=1)


def inputs_of(
    question: str,
    context: str,
    vocabulary: TextEncoder,
    limits: ReadingLimits | None = None,
    plan: Plan = AS_THEY_COME,
) -> dict[str, np.ndarray]:
    """The model's inputs of one question on one short context, a batch of one.

    Args:
        question: the question.
        context: the context, which fits into one window.
        vocabulary: what splits texts for the model.
        limits: how long texts the model reads; by default those of words.
        plan: makes the batch of the shape that the model is to see.

    Raises:
        UserError: the context does not fit into one window.
    """
    limits = limits or ReadingLimits()
    examples = [Example("", question, context, ())]
    features = build_features(examples, vocabulary.tokens)
    windows = reading_windows(features, np.arange(1), limits)
    if len(windows) > 1:
        raise UserError(
            f"the context is longer than a window of {limits.window:,} tokens; give a "
            "part of it"
        )
    maker = reading_maker(examples, features, vocabulary, windows)
    (batch,) = plan(windows, features.question_lengths)
    return maker.inputs(batch)


class Reader:
    """Answers questions on passages of any length.

    Args:
        predict: computes logits, whatever it is: from a batch of a model's inputs
            `start_logits` and `end_logits`, float `(batch, context_length)`, or with
            `data.no_answer` one more, that of no answer first.
        vocabulary: the vocabulary the model was trained with.
        config: the configuration it was trained with.
        threshold: the probability of "no answer" above which that is the best answer,
            for models that know it.
        any_shape: a new shape of a batch costs `predict` nothing, so texts are read
            with others of about their length; otherwise in batches of few shapes.
        unpadded: the contexts of a batch must be equally long; for any shape alone.
        attends: `predict` also tells `attention`, float `(batch, context_length,
            question_length)`: how each token of the context attends to the question.
    """

    def __init__(
        self,
        predict: Predict,
        vocabulary: TextEncoder,
        config: Config,
        threshold: float = DEFAULT_THRESHOLD,
        any_shape: bool = False,
        unpadded: bool = False,
        attends: bool = False,
    ):
        self.predict = predict
        self.vocabulary = vocabulary
        self.config = config
        self.threshold = threshold
        self.any_shape = any_shape
        self.alike = 1.0 if unpadded else ALIKE
        self.attends = attends
        self.limits = MODELS[config.model.name].limits

    @classmethod
    def load(cls, run: str | os.PathLike | None = None, threads: int = 0) -> Self:
        """The reader of a run directory, or of an ONNX export.

        Args:
            run: the directory; by default that of the reader that is part of the
                package, which is logged.
            threads: for an export, see `qanet.onnx_reader.load_export`.

        Raises:
            UserError: as `qanet.run.Run.load`, `qanet.onnx_reader.load_export` and
                `qanet.shipped.shipped_reader` do.
        """
        run = shipped.shipped_reader() if run is None else Path(run)
        if run == shipped.SHIPPED:
            log.info("reader: %s, which is part of the package", run.name)
        if is_export(run):
            return cls(**load_export(run, threads)._asdict(), any_shape=True)
        return cls.of(Run(run).load())

    @classmethod
    def of(cls, trained: TrainedModel, as_they_come: bool = False) -> Self:
        """The reader of a trained model.

        Args:
            trained: the model.
            as_they_come: texts come one by one rather than as a data set, so that none
                is to wait for the compilation of its shape (on TensorFlow, which can
                leave shapes open).
        """
        # Here, since an ONNX export is read without Keras.
        from qanet.models.prediction import any_shape, prediction

        predict = any_shape(trained.model) if as_they_come else None
        return cls(
            predict or prediction(trained.model),
            trained.vocabulary,
            trained.config,
            trained.threshold,
            any_shape=predict is not None,
        )

    def answer(
        self, question: str, context: str | Sequence[str], top_k: int = 1
    ) -> Answer | list[Answer]:
        """Answers one question.

        Args:
            question: the question.
            context: the passage, of any length, or several passages.
            top_k: number of answers.

        Returns:
            The best answer, or with `top_k > 1` the list of the best ones, best first.
            An empty one says that the context does not answer: a model with
            `data.no_answer` does, and any where the context has no word.

        Raises:
            UserError: as `answer_many` does.
        """
        (answers,) = self.answer_many([(question, context)], top_k)
        return answers[0] if top_k == 1 else answers

    def answer_many(
        self,
        pairs: Sequence[tuple[str, str | Sequence[str]]],
        top_k: int = 1,
        max_answer_tokens: int | None = None,
        progress: str | None = None,
    ) -> list[list[Answer]]:
        """Answers many questions in one go.

        Args:
            pairs: (question, context) pairs; instead of one context a list of
                passages, whose answers compete.
            top_k: number of answers to each.
            max_answer_tokens: the most tokens an answer may have; by default what the
                reader was trained with, at most `limits.answer`.
            progress: label of a progress bar; none by default.

        Returns:
            For each pair its answers, best first.

        Raises:
            UserError: a question or a context is blank or no text, a pair has no
                context, a question has more than `limits.question` tokens, or a number
                is not a whole one from 1 on.
            NotFinite: the model computes what is no number.
        """
        _check_number("top_k", top_k)
        if max_answer_tokens is not None:
            _check_number("max_answer_tokens", max_answer_tokens)
        examples, ends = [], []
        for i, pair in enumerate(pairs):
            question, contexts = _texts_of(pair, i)
            if not self.vocabulary.count(question, 0):
                raise _blank("question", i)
            for passage in contexts:
                # A context without a word has no answer.
                if not passage.strip():
                    raise _blank("context", i)
                examples.append(Example(str(i), question, passage, ()))
            ends.append(len(examples))
        features = build_features(examples, self.vocabulary.tokens)
        limit = max_answer_tokens
        if limit is None:
            limit = self.config.data.answer_limit
        spans = [
            self._spans(logits, limit, top_k)
            for logits in self.logits(examples, features, progress=progress)
        ]
        return [
            decide(
                rank_answers(
                    [example.context for example in examples[first:end]],
                    [features.spans_of(i) for i in range(first, end)],
                    spans[first:end],
                    top_k,
                ),
                self.threshold,
            )[:top_k]
            for first, end in itertools.pairwise([0, *ends])
        ]

    def read(
        self,
        examples: Sequence[Example],
        features: Features,
        chosen: np.ndarray | None = None,
        top_k: int = 1,
        progress: str | None = None,
    ) -> list[list[Answer]]:
        """Answers examples that are tokenised already, and decides nothing.

        Args:
            examples: the examples that `features` was built from.
            features: their tokens.
            chosen: indices of the examples to answer, rising; all by default.
            top_k: number of spans to each.
            progress: label of a progress bar; none by default.

        Returns:
            For each chosen example what `qanet.decoding.rank_answers` gives.

        Raises:
            UserError, NotFinite: as `logits` does.
        """
        if chosen is None:
            chosen = np.arange(len(examples))
        limit = self.config.data.answer_limit
        logits = self.logits(examples, features, chosen, progress)
        return [
            rank_answers(
                [examples[i].context],
                [features.spans_of(i)],
                [self._spans(of_context, limit, top_k)],
                top_k,
            )
            for i, of_context in zip(chosen, logits, strict=True)
        ]

    def _spans(self, logits: ContextLogits, limit: int, top_k: int) -> Spans:
        """The best spans of a context."""
        if self.limits.one_word:
            limit, logits = 1, logits._replace(tokens=logits.tokens / 2)
        return spans_of_context(logits, limit, top_k)

    def logits(
        self,
        examples: Sequence[Example],
        features: Features,
        chosen: np.ndarray | None = None,
        progress: str | None = None,
    ) -> list[ContextLogits]:
        """What the model says of the context of each chosen example.

        Args:
            examples: the examples that `features` was built from.
            features: their tokens.
            chosen: indices of the examples to read, rising; all by default.
            progress: label of a progress bar; none by default.

        Raises:
            UserError: a question has no token or more than `limits.question`.
            NotFinite: the model computes what is no number.
        """
        if chosen is None:
            chosen = np.arange(len(examples))
        if not len(chosen):
            return []
        lengths = features.question_lengths
        for i in chosen:
            self._check_length(examples[i], lengths[i])
        windows = reading_windows(features, chosen, self.limits)
        maker = reading_maker(examples, features, self.vocabulary, windows)
        logits, no_answer = self._window_logits(maker, progress)
        firsts = np.searchsorted(windows.examples, chosen)
        ends = np.searchsorted(windows.examples, chosen, side="right")
        return [
            join_windows(
                logits[first:end], windows.offsets[first:end], no_answer[first:end]
            )
            for first, end in zip(firsts, ends, strict=True)
        ]

    def check_questions(self, examples: Sequence[Example]) -> None:
        """Refuses a question that is blank or too long, before a long work begins.

        Raises:
            UserError: a question has no token or more than `limits.question`.
        """
        for example in examples:
            self._check_length(example, self.vocabulary.count(example.question))

    def _check_length(self, example: Example, length: int) -> None:
        if not length:
            raise UserError(f"question {printable(example.id)} is blank")
        if length > self.limits.question:
            raise UserError(
                f"question {printable(example.id)} has {length} "
                f"{self.vocabulary.unit}; shorten it to at most {self.limits.question}"
            )

    def _plan(self, features: Features, windows: Windows) -> list[PlannedBatch]:
        questions = features.question_lengths[windows.examples]
        most = self.config.training.evaluation_batch_size
        if self.any_shape:
            return plan_reading_any_shape(windows, questions, most, self.alike)
        # The next power of two, so that few shapes are compiled.
        rows = min(1 << (len(windows) - 1).bit_length(), most)
        return plan_reading(
            windows, questions, self.config.data, rows, self.limits.window
        )

    def _window_logits(
        self, maker: BatchMaker, progress: str | None
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """What the model says of each item.

        Returns:
            Start and end logits of its tokens, `(2, length)` an item, and its logits
            of there being no answer, `(items,)`; -inf where the model cannot tell.
        """
        windows = maker.windows
        # In one piece: many small arrays would lie between the large ones of the
        # batches, whose memory could then not be used again.
        ends = np.cumsum(windows.lengths)
        logits = np.split(np.empty((2, ends[-1]), np.float32), ends[:-1], axis=1)
        no_answer = np.full(len(windows), -np.inf)
        with progress_bar(
            total=len(windows),
            desc=progress,
            unit="window",
            disable=progress is None,
            leave=False,
        ) as bar:
            for batch in self._plan(maker.features, windows):
                outputs = self.predict(maker.inputs(batch))
                real = batch.real
                items = batch.items[real]
                both = [outputs[name][real] for name in ("start_logits", "end_logits")]
                both = np.stack(both, axis=1)
                if self.config.data.no_answer:
                    both, no_answer[items] = split_no_answer(both)
                    _check_finite(no_answer[items])
                for item, of_item in zip(items, both, strict=True):
                    logits[item][:] = of_item[:, : windows.lengths[item]]
                    _check_finite(logits[item])
                bar.update(len(items))
        return logits, no_answer


def _check_number(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or value < 1:
        raise UserError(f"{name}={value!r}: must be a whole number from 1 on")


def _texts_of(pair: Any, number: int) -> tuple[str, list[str]]:
    """The question and the contexts of a pair."""
    try:
        question, context = [] if isinstance(pair, str) else pair
        passages = iter([context] if isinstance(context, str) else context)
    except (TypeError, ValueError):
        raise UserError(
            f"pair {number} is none; give a question and a context or a list of them"
        ) from None
    contexts = list(passages)
    if not contexts:
        raise UserError(f"pair {number} has no context; give at least one")
    for text in (question, *contexts):
        if not isinstance(text, str):
            raise UserError(
                f"pair {number} holds no text but {type(text).__name__}; give strings"
            )
    return question, contexts


def _blank(name: str, pair: int) -> UserError:
    return UserError(f"the {name} of pair {pair} is blank; give some text")


class NotFinite(UserError):
    """What a model says cannot be ranked."""


def _check_finite(logits: np.ndarray) -> None:
    if not np.isfinite(logits).all():
        raise NotFinite(
            "the reader computes what is no finite number, so its files are damaged; "
            "copy or export it anew"
        )
