"""Keeps the questions whose answers a trained reader finds."""

from collections.abc import Sequence

from qanet.console import progress_bar
from qanet.datasets.features import build_features
from qanet.datasets.squad import Example
from qanet.decoding import Answer, decide
from qanet.errors import UserError
from qanet.evaluation.metrics import f1_score
from qanet.reader import Reader

# Questions that are read together, to bound the memory.
PART = 2000


def answered(
    reader: Reader, examples: Sequence[Example], least_f1: float
) -> list[Example]:
    """The examples to which the reader gives the right answer, in their order.

    An example without an answer is kept where the reader says that there is none.

    Args:
        reader: the reader.
        examples: questions on paraphrased contexts, for instance.
        least_f1: F1 of the reader's answer and a gold answer, at least.

    Raises:
        UserError: there are examples without an answer, and the reader cannot say so;
            or a question is too long for it.
    """
    if not reader.config.data.no_answer and any(e.impossible for e in examples):
        raise UserError(
            "some of the questions have no answer, and the reader cannot say so; take "
            "one that was trained with data.no_answer"
        )
    reader.check_questions(examples)
    kept = []
    with progress_bar(total=len(examples), desc="reading", unit="question") as bar:
        for first in range(0, len(examples), PART):
            part = examples[first : first + PART]
            features = build_features(part, reader.vocabulary.tokens)
            for example, ranked in zip(part, reader.read(part, features), strict=True):
                if agrees(example, decide(ranked, reader.threshold)[0], least_f1):
                    kept.append(example)
                bar.update()
    return kept


def agrees(example: Example, answer: Answer, least_f1: float) -> bool:
    """Whether an answer is right."""
    if example.impossible:
        return not answer.text
    golds = [gold.text for gold in example.answers]
    # Of answers without a letter or digit, such as "$", the F1 is 0 even if equal.
    if answer.text in golds:
        return True
    return bool(golds) and f1_score(answer.text, golds) >= least_f1
