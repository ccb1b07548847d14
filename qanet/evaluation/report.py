"""Scores broken down by the question's word and by the lengths of answer and context.

Each question is in one group of each kind:

- `question_word`: the first of who (whom, whose), what, which, when, where, why and how
  that stands in the question, in capitals or not; "In what year" is `what`, and so is
  "What did he do when". `how many/much` is told apart from other `how`. A question
  with none of them is `other`.
- `answer_tokens`: the length of the first gold answer, the only one of a train file;
  `no answer` where the question is impossible.
- `context_tokens`: the length of the context.

Lengths are counted in tokens of `qanet.text.tokenizer`, to which a punctuation mark is
a token too.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import pairwise
from math import inf
from pathlib import Path

from qanet.datasets.squad import Example
from qanet.evaluation.file_names import REPORT
from qanet.evaluation.metrics import rules
from qanet.files import write_text
from qanet.text.tokenizer import tokenize

HOW_MANY = "how many/much"
OTHER = "other"
NO_ANSWER = "no answer"
_QUESTION_WORDS = {
    "who": "who",
    "whom": "who",
    "whose": "who",
    "what": "what",
    "which": "which",
    "when": "when",
    "where": "where",
    "why": "why",
    "how": "how",
}
# The most tokens that each group takes.
_ANSWER_TOKENS = {"1": 1, "2": 2, "3-4": 4, "5-8": 8, "9+": inf}
_CONTEXT_TOKENS = {
    "up to 100": 100,
    "101-150": 150,
    "151-200": 200,
    "201-300": 300,
    "301+": inf,
}
# The groups of each kind, in the order in which they are shown.
GROUPS = {
    "question_word": (*dict.fromkeys(_QUESTION_WORDS.values()), HOW_MANY, OTHER),
    "answer_tokens": (*_ANSWER_TOKENS, NO_ANSWER),
    "context_tokens": tuple(_CONTEXT_TOKENS),
}


@dataclass(frozen=True, slots=True)
class Scores:
    """How well a group of questions was answered.

    Attributes:
        questions: their number, at least 1.
        exact_match, f1: in percent.
    """

    questions: int
    exact_match: float
    f1: float


@dataclass(frozen=True, slots=True)
class Report:
    """Scores of a data set and of its parts.

    Attributes:
        all: those of all questions.
        groups: those of each group, by kind and by group, as `GROUPS` names and orders
            them; without the groups that no question is in.
    """

    all: Scores
    groups: dict[str, dict[str, Scores]]

    def save(self, directory: Path, source: Mapping[str, str]) -> None:
        """Writes `report.json`: the source, `all`, and under each kind its groups.

        Args:
            directory: where to.
            source: names what was scored.
        """
        report = asdict(self)
        content = {**source, "all": report["all"], **report["groups"]}
        write_text(directory / REPORT, json.dumps(content, indent=1) + "\n")


def break_down(examples: Sequence[Example], predictions: Mapping[str, str]) -> Report:
    """Scores all examples, and those of each group.

    The groups are scored by the rules of SQuAD 1.1 or 2.0 that hold for the whole, so
    that the mean of a kind's groups, weighted by their questions, is the whole's score.

    Args:
        examples: at least one.
        predictions: answer texts by id; a question without one scores 0.
    """
    metric = rules(examples)

    def scores(group: Sequence[Example]) -> Scores:
        metrics = metric(group, predictions)
        return Scores(metrics["total"], metrics["exact_match"], metrics["f1"])

    members = {kind: {group: [] for group in groups} for kind, groups in GROUPS.items()}
    for example in examples:
        for kind, group in groups_of(example).items():
            members[kind][group].append(example)
    groups = {
        kind: {group: scores(some) for group, some in groups.items() if some}
        for kind, groups in members.items()
    }
    return Report(scores(examples), groups)


def groups_of(example: Example) -> dict[str, str]:
    """The example's group of each kind in `GROUPS`."""
    return {
        "question_word": question_word(example.question),
        "answer_tokens": _answer_group(example),
        "context_tokens": _context_group(example.context),
    }


def question_word(question: str) -> str:
    """The question's group of the kind `question_word`."""
    words = [word.lower() for word in tokenize(question)]
    for word, following in pairwise([*words, ""]):
        if word == "how" and following in ("many", "much"):
            return HOW_MANY
        if word in _QUESTION_WORDS:
            return _QUESTION_WORDS[word]
    return OTHER


def table(report: Report) -> list[str]:
    """The report as lines of text, scores with one decimal."""
    lines = [f"{'':18}{'questions':>9}{'exact match':>13}{'F1':>7}"]
    lines.append(_line("all", report.all))
    for kind, groups in report.groups.items():
        lines.append(title(kind))
        lines += [_line(f"  {group}", scores) for group, scores in groups.items()]
    return lines


def title(kind: str) -> str:
    """A kind's name for people to read."""
    return kind.replace("_", " ")


def _line(name: str, scores: Scores) -> str:
    return (
        f"{name:18}{scores.questions:>9,}{scores.exact_match:>13.1f}{scores.f1:>7.1f}"
    )


def _answer_group(example: Example) -> str:
    if example.impossible:
        return NO_ANSWER
    return _bucket(example.answers[0].text, _ANSWER_TOKENS)


# The questions on a context follow one another.
@lru_cache(maxsize=1)
def _context_group(context: str) -> str:
    return _bucket(context, _CONTEXT_TOKENS)


def _bucket(text: str, buckets: Mapping[str, float]) -> str:
    """The first group that takes as many tokens as the text has."""
    length = len(tokenize(text))
    return next(group for group, most in buckets.items() if length <= most)
