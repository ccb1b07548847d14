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
        "either version, or 'sample' for that of the sample",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="where predictions.json, nbest.json, metrics.json and, for readers that "
        "know it, the probabilities of no answer, na_prob.json, go "
        "(default: evaluation/ in the run directory); with --predictions, where the "
        "report goes (default: beside the predictions)",
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="also print exact match and F1 by question word, by length of the answer "
        "and by length of the context, and write them to report.json and, drawn, to "
        "report.png",
    )
    return parser


def run(options: argparse.Namespace) -> None:
    """Reads or takes the predictions, and prints their scores."""
    if options.report:
        # Refuses where matplotlib is lacking, before anybody waits for the scores.
        import qanet.evaluation.drawing  # noqa: F401
    if options.predictions:
        output = options.output or options.predictions.parent
        examples, predictions, metrics = _take(options, output)
    else:
        output = options.output or options.model / "evaluation"
        examples, predictions, metrics = _read(options, output)
    if options.report:
        _report(examples, predictions, output)
    print(json.dumps(metrics))


def _take(options: argparse.Namespace, output: Path):
    """Examples, the predictions of a file for them, and their scores."""
    from qanet.datasets.sources import load_examples
    from qanet.evaluation.metrics import read_predictions, score

    predictions = read_predictions(options.predictions)
    if options.report:
        _check_report(options, output)
    elif options.output:
        raise UserError(
            "--output goes with --model or --report; --predictions alone writes nothing"
        )
    examples = load_examples(options.data, "dev").examples
    return examples, predictions, score(examples, predictions)


def _read(options: argparse.Namespace, output: Path):
    """Examples, the reader's predictions for them, and their scores; all is written."""
    from qanet.datasets.features import build_features
    from qanet.datasets.sources import load_examples
    from qanet.evaluation.evaluator import evaluate
    from qanet.reader import Reader

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
    return examples, result.predictions, result.metrics


def _check_report(options: argparse.Namespace, output: Path) -> None:
    """Refuses a directory that is a file, and one where the input is report.json."""
    check_output(output)
    for path in (options.predictions, Path(options.data)):
        if path.resolve() == (output / "report.json").resolve():
            raise UserError(
                f"{path}: the report would take its place; give another --output"
            )


def _report(examples, predictions: dict[str, str], output: Path) -> None:
    """Prints the scores by groups, writes and draws them."""
    from qanet.evaluation.drawing import save_picture
    from qanet.evaluation.report import break_down, table

    report = break_down(examples, predictions)
    print("\n".join(table(report)))
    try:
        report.save(output)
        save_picture(report, output)
    except OSError as error:
        raise UserError(
            f"{output}: the report cannot be written: {error.strerror}; give another "
            "--output"
        ) from None
    print(f"report written to {output}", file=sys.stderr)
