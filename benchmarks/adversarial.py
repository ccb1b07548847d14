"""Scores predictions on adversarial SQuAD as its authors do (Jia & Liang, 2017).

    python evaluate.py --model RUN --data addsent.json --output OUT
    python benchmarks/adversarial.py --data addsent.json \
        --predictions OUT/predictions.json

Every original question has attacked copies, whose ids continue the original's after a
hyphen. The adversary gets the copy with the lowest F1; a question that was not
attacked counts as it is. Prints one line of JSON.
"""

import argparse
import json

from qanet.datasets.squad import Example, read_squad
from qanet.evaluation.metrics import exact_match_score, f1_score, read_predictions


def adversarial_scores(
    examples: list[Example], predictions: dict[str, str]
) -> dict[str, float]:
    """Original and adversarial exact match and F1, in percent.

    Args:
        examples: originals and attacked copies.
        predictions: answer text by question id; a missing one counts as 0.
    """
    originals: dict[str, tuple[float, float]] = {}
    attacked: dict[str, tuple[float, float]] = {}
    for example in examples:
        golds = [answer.text for answer in example.answers]
        prediction = predictions.get(example.id)
        scores = (0.0, 0.0)
        if prediction is not None:
            scores = f1_score(prediction, golds), exact_match_score(prediction, golds)
        original, copy, _ = example.id.partition("-")
        if not copy:
            originals[original] = scores
        elif original not in attacked or scores[0] < attacked[original][0]:
            attacked[original] = scores
    worst = originals | attacked

    def mean(table: dict[str, tuple[float, float]], column: int) -> float:
        return 100.0 * sum(scores[column] for scores in table.values()) / len(worst)

    return {
        "exact_match": mean(worst, 1),
        "f1": mean(worst, 0),
        "original_exact_match": mean(originals, 1),
        "original_f1": mean(originals, 0),
        "total": len(worst),
    }


def main() -> None:
    """Parses the options and prints the scores."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", required=True, metavar="FILE")
    parser.add_argument("--predictions", required=True, metavar="FILE")
    options = parser.parse_args()
    examples = read_squad(options.data).examples
    print(
        json.dumps(adversarial_scores(examples, read_predictions(options.predictions)))
    )


if __name__ == "__main__":
    main()
