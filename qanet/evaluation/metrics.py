"""Exact match and F1 as the official SQuAD 1.1 and 2.0 evaluations compute them.

The figures equal those of the official scripts (rajpurkar.github.io/SQuAD-explorer),
with one difference: a question without a prediction scores 0 and stays in the total
under 2.0 as well, where the official script leaves it out.
"""

import os
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from qanet.datasets.squad import Example, read_json
from qanet.errors import UserError

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalize_answer(text: str) -> str:
    """Lower-cases, then drops ASCII punctuation, articles and surplus white space."""
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match_score(prediction: str, golds: Sequence[str]) -> float:
    """1.0 where the prediction equals one of the golds once normalised, else 0.0.

    Args:
        prediction: The answer to judge.
        golds: The right answers, at least one.
    """
    normalized = normalize_answer(prediction)
    return max(float(normalized == normalize_answer(gold)) for gold in golds)


def f1_score(prediction: str, golds: Sequence[str]) -> float:
    """The highest F1, between 0 and 1, of the prediction's tokens against one gold's.

    As in SQuAD 1.1, two texts that both normalise to nothing have no token in common
    and score 0, although they match exactly.

    Args:
        prediction: The answer to judge.
        golds: The right answers, at least one.
    """
    predicted = Counter(normalize_answer(prediction).split())
    return max(_token_f1(predicted, gold) for gold in golds)


def score(
    examples: Sequence[Example], predictions: Mapping[str, str]
) -> dict[str, float]:
    """Scores by SQuAD 2.0 where any example is impossible, else by SQuAD 1.1.

    Args:
        examples: At least one.
        predictions: Answer texts by id; empty for "the context does not say".

    Returns:
        Either way with `exact_match` and `f1` in percent and the `total` of questions.
    """
    return rules(examples)(examples, predictions)


def rules(
    examples: Sequence[Example],
) -> Callable[[Sequence[Example], Mapping[str, str]], dict[str, float]]:
    """`squad_v2` where any example is impossible, else `squad_v1`."""
    if any(example.impossible for example in examples):
        return squad_v2
    return squad_v1


def squad_v1(
    examples: Sequence[Example], predictions: Mapping[str, str]
) -> dict[str, float]:
    """The SQuAD 1.1 evaluation.

    Args:
        examples: At least one, each with answers.
        predictions: Answer texts by id. A question without one scores 0.

    Returns:
        `exact_match` and `f1` in percent, and the `total` of questions.
    """
    exact = f1 = 0.0
    for example in examples:
        if example.id in predictions:
            golds = [answer.text for answer in example.answers]
            exact += exact_match_score(predictions[example.id], golds)
            f1 += f1_score(predictions[example.id], golds)
    total = len(examples)
    return {
        "exact_match": 100.0 * exact / total,
        "f1": 100.0 * f1 / total,
        "total": total,
    }


def squad_v2(
    examples: Sequence[Example],
    predictions: Mapping[str, str],
    no_answer_probabilities: Mapping[str, float] | None = None,
    threshold: float = 1.0,
) -> dict[str, float]:
    """The SQuAD 2.0 evaluation.

    Args:
        examples: At least one.
        predictions: Answer texts by id, empty for "the context does not say". A
            question without one scores 0.
        no_answer_probabilities: For each id in `predictions`, how likely it is that
            the context does not answer.
        threshold: A prediction whose probability exceeds it counts as empty.

    Returns:
        `exact` (also as `exact_match`) and `f1` in percent and `total`: for all
        questions and, with the prefix `HasAns_` or `NoAns_`, for those of either kind.
        Where probabilities are given, also `best_exact` and `best_f1`, the most that
        any threshold gives, and that threshold as `best_exact_thresh` and
        `best_f1_thresh`. As in the official script, equal probabilities are taken one
        by one, so with some a little more may be told than the threshold gives.
    """
    impossible = {example.id: example.impossible for example in examples}
    groups = {
        "": examples,
        "HasAns_": [example for example in examples if not example.impossible],
        "NoAns_": [example for example in examples if example.impossible],
    }
    scores = {
        "exact": _v2_scores(exact_match_score, examples, predictions),
        "f1": _v2_scores(f1_score, examples, predictions),
    }
    best = {}
    if no_answer_probabilities is not None:
        for name, raw in scores.items():
            total, best_threshold = _best_threshold(
                raw, predictions, impossible, no_answer_probabilities
            )
            best[f"best_{name}"] = 100.0 * total / len(examples)
            best[f"best_{name}_thresh"] = best_threshold
            scores[name] = {
                key: float(impossible[key])
                if no_answer_probabilities[key] > threshold
                else value
                for key, value in raw.items()
            }

    results: dict[str, float] = {}
    for prefix, group in groups.items():
        if group:
            for name, by_id in scores.items():
                total = sum(by_id.get(example.id, 0.0) for example in group)
                results[prefix + name] = 100.0 * total / len(group)
            results[prefix + "total"] = len(group)
    return {"exact_match": results["exact"], **results, **best}


def read_predictions(path: str | os.PathLike[str]) -> dict[str, str]:
    """Reads predictions: a JSON object of answer texts by question id.

    Raises:
        UserError: The file cannot be read or is not such an object.
    """
    predictions = read_json(path)
    if not isinstance(predictions, dict):
        raise UserError(f"{path}: must be an object of answer texts by question id")
    for identifier, text in predictions.items():
        if not isinstance(text, str):
            raise UserError(f"{path}: the answer to {identifier!r} must be a string")
    return predictions


def _token_f1(predicted: Counter[str], gold: str) -> float:
    expected = Counter(normalize_answer(gold).split())
    common = (predicted & expected).total()
    return 2.0 * common / max(predicted.total() + expected.total(), 1)


def _v2_scores(
    metric: Callable[[str, Sequence[str]], float],
    examples: Sequence[Example],
    predictions: Mapping[str, str],
) -> dict[str, float]:
    """The metric by id, for every question with a prediction, before any threshold."""
    scores = {}
    for example in examples:
        if example.id in predictions:
            prediction = predictions[example.id]
            golds = [a.text for a in example.answers if normalize_answer(a.text)]
            if golds:
                scores[example.id] = metric(prediction, golds)
            else:
                scores[example.id] = exact_match_score(prediction, [""])
    return scores


def _best_threshold(
    scores: Mapping[str, float],
    predictions: Mapping[str, str],
    impossible: Mapping[str, bool],
    probabilities: Mapping[str, float],
) -> tuple[float, float]:
    """The highest sum of scores over all thresholds, and the lowest threshold with it.

    Starts from no answer to any question and gives the predictions, the surest first;
    of equal ones, as the official script, one by one.
    """
    total = best = float(sum(impossible[key] for key in scores))
    threshold = 0.0
    for key in sorted(probabilities, key=probabilities.__getitem__):
        if key in scores:
            total += -bool(predictions[key]) if impossible[key] else scores[key]
            if total > best:
                best, threshold = total, probabilities[key]
    return best, threshold
