"""Answers a whole data set with a reader and scores the answers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from qanet.datasets.features import Features
from qanet.datasets.squad import Example, spread
from qanet.decoding import Answer, decide
from qanet.evaluation.file_names import (
    METRICS,
    NA_PROB,
    NBEST,
    PREDICTIONS,
    REPORT_FILES,
    RESULT_FILES,
)
from qanet.evaluation.metrics import score, squad_v2
from qanet.files import write_text
from qanet.reader import Reader


@dataclass
class Evaluation:
    """What a reader made of a data set.

    Attributes:
        metrics: `exact_match`, `f1` (percentages) and `total`, at least.
        answers: for each question id the best answers, best first.
        no_answer: for each question id the probability that the context does not
            answer; empty where the model cannot tell.
    """

    metrics: dict[str, Any]
    answers: dict[str, list[Answer]]
    no_answer: dict[str, float] = field(default_factory=dict)

    @property
    def predictions(self) -> dict[str, str]:
        """The text of the best answer by question id."""
        return {id: answers[0].text for id, answers in self.answers.items()}

    def save(self, directory: Path, source: Mapping[str, Any]) -> None:
        """Writes `predictions.json`, `nbest.json` and `metrics.json`.

        And `na_prob.json`, as SQuAD's official evaluation reads it, where the model
        tells whether there is an answer. Files of a former evaluation that this one
        has not, also of its report, are removed.

        Args:
            directory: where to write.
            source: what `metrics.json` names, such as the data and the readers.
        """
        nbest = {
            id: [answer.in_passage() for answer in answers]
            for id, answers in self.answers.items()
        }
        # The metrics first: they tell that the rest is an evaluation's, which the same
        # command may replace where this one is stopped.
        contents = {
            METRICS: {**source, **self.metrics},
            PREDICTIONS: self.predictions,
            NBEST: nbest,
        }
        if self.no_answer:
            contents[NA_PROB] = self.no_answer
        for name, content in contents.items():
            text = json.dumps(content, ensure_ascii=False, indent=1)
            write_text(directory / name, text + "\n")
        for name in {*RESULT_FILES, *REPORT_FILES} - contents.keys():
            (directory / name).unlink(missing_ok=True)


def evaluate(
    reader: Reader,
    examples: Sequence[Example],
    features: Features,
    questions: int = 0,
    top_k: int = 1,
    progress: str | None = None,
    choose_threshold: bool = False,
) -> Evaluation:
    """Answers the examples and scores the answers.

    A model that knows "no answer" gives it where its probability is above a threshold:
    the reader's, or the one with the highest F1 on these examples. Then `metrics` also
    tells the `threshold`.

    Args:
        reader: the reader.
        examples: the data set.
        features: its tokens.
        questions: number of questions to read, spread evenly over the data set; 0
            reads all.
        top_k: answers kept for each question.
        progress: label of a progress bar; none by default.
        choose_threshold: take the threshold that is best for these examples, if some
            of them have an answer and some have none: others tell of none.
    """
    total = len(examples)
    chosen = np.array(spread(range(total), questions or total), dtype=np.int64)
    answers = reader.read(examples, features, chosen, top_k, progress)
    chosen_examples = [examples[i] for i in chosen]
    by_id = {
        example.id: ranked
        for example, ranked in zip(chosen_examples, answers, strict=True)
    }
    no_answer, settings = {}, {}
    if reader.config.data.no_answer:
        no_answer = {
            id: next(answer.score for answer in ranked if not answer.text)
            for id, ranked in by_id.items()
        }
        threshold = reader.threshold
        if choose_threshold and len({e.impossible for e in chosen_examples}) == 2:
            threshold = _best_threshold(chosen_examples, by_id, no_answer)
        by_id = {id: decide(ranked, threshold) for id, ranked in by_id.items()}
        settings = {"threshold": threshold}
    by_id = {id: ranked[:top_k] for id, ranked in by_id.items()}
    predictions = {id: ranked[0].text for id, ranked in by_id.items()}
    metrics = score(chosen_examples, predictions) | settings
    return Evaluation(metrics, by_id, no_answer)


def _best_threshold(
    examples: Sequence[Example],
    answers: dict[str, list[Answer]],
    no_answer: dict[str, float],
) -> float:
    """The threshold of no answer with the highest F1, officially computed."""
    # No probability is above 1, so spans alone.
    spans = {id: decide(ranked, 1.0)[0].text for id, ranked in answers.items()}
    return squad_v2(examples, spans, no_answer)["best_f1_thresh"]
