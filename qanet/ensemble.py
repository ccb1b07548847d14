"""Several readers that answer as one."""

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from qanet.console import log
from qanet.datasets.features import Features, build_features
from qanet.datasets.squad import Example
from qanet.decoding import (
    ContextLogits,
    log_totals,
    probabilities,
    split_no_answer,
)
from qanet.errors import UserError
from qanet.reader import Reader
from qanet.token_alignment import align

# Added to a probability before its logarithm, so that no logit is infinite.
SMALLEST = 1e-12


class Ensemble(Reader):
    """The mean of what readers of any kind say, on the tokens of the first one.

    Args:
        readers: at least one. Either all of them can say that there is no answer, or
            none of them can; the threshold of that is the mean of theirs. Answers may
            have as many tokens as those of any of them.

    Raises:
        UserError: some of them can and some cannot.
    """

    def __init__(self, readers: Sequence[Reader]):
        first = readers[0]
        limit = max(reader.config.data.answer_limit for reader in readers)
        data = first.config.data.model_copy(update={"answer_limit": limit})
        super().__init__(
            first.predict,
            first.vocabulary,
            first.config.model_copy(update={"data": data}),
            float(np.mean([reader.threshold for reader in readers])),
        )
        self.readers = readers
        # Where all answer with one word, so do they together.
        longest = {reader.limits.answer for reader in readers}
        answer = longest.pop() if len(longest) == 1 else None
        self.limits = replace(self.limits, answer=answer)
        if len({reader.config.data.no_answer for reader in readers}) > 1:
            raise UserError(
                "of these readers some can say that there is no answer "
                "(data.no_answer) and some cannot; take readers of one kind"
            )

    def logits(
        self,
        examples: Sequence[Example],
        features: Features,
        chosen: np.ndarray | None = None,
        progress: str | None = None,
    ) -> list[ContextLogits]:
        """See `Reader.logits`.

        Here they are logarithms of mean probabilities, and to each side the mean of
        the readers' log totals is added, by which several passages compete.
        """
        if chosen is None:
            chosen = np.arange(len(examples))
        # Before the first reader reads, which may take long.
        self.check_questions([examples[i] for i in chosen])
        spans = [features.spans_of(i) for i in chosen]
        total = [np.zeros((2, 1 + len(to))) for to in spans]
        sums = np.zeros((len(spans), 2))
        for number, reader in enumerate(self.readers, start=1):
            if progress:
                log.info("reader %d of %d", number, len(self.readers))
            own = features
            if reader.vocabulary.key != self.vocabulary.key:
                own = build_features(examples, reader.vocabulary.tokens)
            said = reader.logits(examples, own, chosen, progress)
            for place, (i, logits) in enumerate(zip(chosen, said, strict=True)):
                found = align(probabilities(logits), own.spans_of(i), spans[place])
                total[place] += found / len(self.readers)
                sums[place] += log_totals(logits) / len(self.readers)
        return [self._as_logits(*both) for both in zip(total, sums, strict=True)]

    def check_questions(self, examples: Sequence[Example]) -> None:
        """See `Reader.check_questions`."""
        for reader in self.readers:
            reader.check_questions(examples)

    def _as_logits(self, mean: np.ndarray, sums: np.ndarray) -> ContextLogits:
        logits = np.log(mean + SMALLEST) + sums[:, None]
        if not self.config.data.no_answer:
            return ContextLogits(logits[:, 1:])
        (tokens,), (no_answer,) = split_no_answer(logits[None])
        return ContextLogits(tokens, float(no_answer))


def load_readers(runs: Sequence[str | os.PathLike]) -> Reader:
    """The reader of a run directory, or the ensemble of several.

    Raises:
        UserError: as `Reader.load` and `Ensemble` do.
    """
    readers = [Reader.load(run) for run in runs]
    return readers[0] if len(readers) == 1 else Ensemble(readers)
