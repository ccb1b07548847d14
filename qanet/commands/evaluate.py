"""`python evaluate.py`: scores a reader or a file of predictions."""

import argparse
import json
import sys
from pathlib import Path

from qanet.commands.options import check_output
from qanet.errors import UserError


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="evaluate.py",
        description="Reads a data set with a trained reader, or takes predictions "
        "from a file, and prints the official exact match and F1 as one line of JSON.",
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--model", type=Path, metavar="RUN_DIR", help="directory that train.py made"
    )
    source.add_argument(
        "--predictions",
        type=Path,
        metavar="FILE",
        help="JSON object from question id to answer text; needs no model",
    )
    parser.add_argument(
        "--data",
        required=True,
        metavar="FILE",
        help="SQuAD v1.1 or v2.0 JSON, or 'squad' or 'squad_v2' for the dev set of "
        "either version",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="where predictions.json, nbest.json, metrics.json and, for readers that "
        "know it, the probabilities of no answer, na_prob.json, go "
        "(default: evaluation/ in the run directory)",
    )
    return parser


def run(options: argparse.Namespace) -> None:
    """Reads or takes the predictions, and prints their scores."""
    from qanet.datasets.sources import load_examples

    if options.predictions:
        from qanet.evaluation.metrics import read_predictions, score

        predictions = read_predictions(options.predictions)
        metrics = score(load_examples(options.data, "dev").examples, predictions)
        if options.output:
            raise UserError("--output goes with --model; --predictions writes nothing")
    else:
        from qanet.datasets.features import build_features
        from qanet.evaluation.evaluator import evaluate
        from qanet.reader import Reader

        output = options.output or options.model / "evaluation"
        check_output(output)
        reader = Reader.load(options.model)
        examples = load_examples(options.data, "dev").examples
        result = evaluate(
            reader,
            examples,
            build_features(examples),
            top_k=20,
            progress="evaluating",
        )
        result.save(output)
        print(f"written to {output}", file=sys.stderr)
        metrics = result.metrics
    print(json.dumps(metrics))
