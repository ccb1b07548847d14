"""Answers a whole data set with a reader and scores the answers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qanet.datasets.features import Features
from qanet.datasets.squad import Example
from qanet.decoding import Answer
from qanet.evaluation.metrics import score
from qanet.files import write_text
from qanet.reader import Reader


@dataclass
class Evaluation:
    """What a reader made of a data set.

    Attributes:
        metrics: `exact_match`, `f1` (percentages) and `total`, at least.
        answers: for each question id the best answers, best first.
    """

    metrics: dict[str, Any]
    answers: dict[str, list[Answer]]

    def save(self, directory: Path) -> None:
        """Writes `predictions.json`, `nbest.json` and `metrics.json`."""
        predictions = {id: answers[0].text for id, answers in self.answers.items()}
        nbest = {
            id: [
                {
                    "text": answer.text,
                    "start": answer.start,
                    "end": answer.end,
                    "score": answer.score,
                }
                for answer in answers
            ]
            for id, answers in self.answers.items()
        }
        for name, content in (
            ("predictions", predictions),
            ("nbest", nbest),
            ("metrics", self.metrics),
        ):
            text = json.dumps(content, ensure_ascii=False, indent=1)
            write_text(directory / f"{name}.json", text + "\n")


def evaluate(
    reader: Reader,
    examples: Sequence[Example],
    features: Features,
    questions: int = 0,
    top_k: int = 1,
    progress: str | None = None,
) -> Evaluation:
    """Answers the examples and scores the answers.

    Args:
        reader: the reader.
        examples: the data set.
        features: its tokens.
        questions: number of questions to read, spread evenly over the data set; 0
            reads all.
        top_k: answers kept for each question.
        progress: label of a progress bar; none by default.
    """
    total = len(examples)
    count = min(questions, total) if questions else total
    chosen = np.arange(count) * total // count
    answers = reader.read(examples, features, chosen, top_k, progress)
    chosen_examples = [examples[i] for i in chosen]
    by_id = {
        example.id: ranked
        for example, ranked in zip(chosen_examples, answers, strict=True)
    }
    predictions = {id: ranked[0].text for id, ranked in by_id.items()}
    return Evaluation(score(chosen_examples, predictions), by_id)
