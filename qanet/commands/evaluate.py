"""`python evaluate.py`: scores a reader or a file of predictions."""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qanet.commands.options import check_directory, check_readers, load_backend, path_of
from qanet.console import log, say
from qanet.errors import UserError
from qanet.evaluation.file_names import (
    METRICS,
    PREDICTIONS,
    REPORT,
    REPORT_FILES,
    RESULT_FILES,
)
from qanet.shipped import shipped_reader


def add_parser(commands, prog: str | None = None) -> None:
    """Adds the command; `prog` is what it is called by, where not by its name."""
    parser = commands.add_parser(
        "evaluate",
        prog=prog,
        help="score a reader or a file of predictions",
        description="Reads a data set with a trained reader, or takes predictions "
        "from a file, and prints the official exact match and F1 as one line of JSON.",
        epilog="examples:\n"
        "  python evaluate.py --data dev-v1.1.json\n"
        "  python evaluate.py --model runs/qanet-tiny --data sample\n"
        "  python evaluate.py --predictions predictions.json --data dev-v1.1.json",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--model",
        type=path_of,
        nargs="+",
        metavar="RUN_DIR",
        help="directory of a training, or an ONNX export; the probabilities of "
        "several are averaged (default: the reader that is part of the package)",
    )
    source.add_argument(
        "--predictions",
        type=path_of,
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
        type=path_of,
        metavar="DIR",
        help="directory for predictions.json, nbest.json, metrics.json and, for "
        'readers with "no answer", na_prob.json. Default: evaluation/DATA in the run '
        "directory, without --model in the working directory. Required with several "
        "readers. With --predictions: directory of the report (default: beside the "
        "predictions)",
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="also print exact match and F1 by question word, by length of the answer "
        "and by length of the context, and write them to report.json and, drawn, to "
        "report.png",
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    """Reads or takes the predictions, and prints their scores."""
    if options.report:
        # Refuses where matplotlib is lacking, before anybody waits for the scores.
        import qanet.evaluation.drawing  # noqa: F401
    if options.predictions:
        output = options.output or options.predictions.parent
        examples, predictions, metrics = _take(options, output)
    else:
        output = options.output or _default_output(options)
        options.model = options.model or [shipped_reader()]
        examples, predictions, metrics = _read(options, output)
    if options.report:
        path = options.predictions or output / PREDICTIONS
        _report(examples, predictions, output, _source(options.data, path))
    say(json.dumps(metrics))


def _default_output(options: argparse.Namespace) -> Path:
    """A directory of the run's; that of several runs would be nobody's."""
    if options.model is None:
        # The package is not to be written into.
        return Path("evaluation") / _name(options.data)
    if len(options.model) > 1:
        raise UserError("--model: of several readers, say where to write with --output")
    return options.model[0] / "evaluation" / _name(options.data)


def _take(options: argparse.Namespace, output: Path):
    """Examples, the predictions of a file for them, and their scores."""
    from qanet.evaluation.metrics import read_predictions, score

    predictions = read_predictions(options.predictions)
    if options.report:
        _check_output(output, [options.predictions, Path(options.data)], REPORT_FILES)
        source = _source(options.data, options.predictions)
        _refuse_results_of_others(output / REPORT, source)
    elif options.output:
        raise UserError(
            "--output goes with --model or --report; --predictions alone writes nothing"
        )
    examples = _load_dev(options.data)
    ids = {example.id for example in examples}
    missing, unknown = len(ids - predictions.keys()), len(predictions.keys() - ids)
    if missing == len(ids):
        raise UserError(
            f"{options.predictions}: has no prediction for any question of "
            f"{options.data}; give the predictions for these data"
        )
    if missing or unknown:
        log.warning(
            f"{options.predictions}: {missing:,} of {len(ids):,} questions have no "
            f"prediction and score 0; {unknown:,} predictions are for no question of "
            f"{options.data}"
        )
    return examples, predictions, score(examples, predictions)


def _read(options: argparse.Namespace, output: Path):
    """Examples, the reader's predictions for them, and their scores; all is written."""
    from qanet.datasets.features import build_features

    _check_output(output, [Path(options.data)], (*RESULT_FILES, *REPORT_FILES))
    check_readers(options.model)
    data = _full_name(options.data)
    _refuse_run(output)
    readers = sorted(os.path.realpath(directory) for directory in options.model)
    source = {"data": data, "readers": readers}
    # The default place belongs to the run, wherever that is moved to.
    named = source if options.output else {"data": data}
    _refuse_results_of_others(output / METRICS, named)
    _refuse_files_of_others(output)
    examples = _load_dev(options.data)
    load_backend(options.model)

    from qanet.ensemble import load_readers
    from qanet.evaluation.evaluator import evaluate

    reader = load_readers(options.model)
    result = evaluate(
        reader,
        examples,
        build_features(examples, reader.vocabulary.tokens),
        top_k=20,
        progress="evaluating",
    )
    result.save(output, source)
    log.info("written to %s", output)
    return examples, result.predictions, result.metrics


def _load_dev(source: str):
    """The examples to evaluate on; says where their gold answers cannot be right."""
    from qanet.datasets.sources import load_examples

    data = load_examples(source, "dev")
    lost, answers = data.counts["answers_not_found"], data.counts["answers"]
    if lost:
        log.warning(
            f"{source}: {lost:,} of {answers:,} gold answers are not in their context"
        )
    return data.examples


def _name(data: str) -> str:
    """A name for the directory of the results."""
    return Path(data).stem


def _full_name(data: str) -> str:
    """What tells data from all others: their path, or their name."""
    from qanet.datasets.sources import is_name

    return data if is_name(data) else os.path.realpath(data)


def _source(data: str, predictions: Path) -> dict[str, str]:
    """What a report is of."""
    return {"data": _full_name(data), "predictions": os.path.realpath(predictions)}


def _refuse_run(output: Path) -> None:
    """Refuses the directory of a training, whose end its own metrics mark."""
    if (output / "config.json").exists():
        raise UserError(f"{output}: holds a run; give another --output")


def _refuse_files_of_others(output: Path) -> None:
    """Refuses a directory where files that no evaluation wrote would be replaced."""
    if (output / METRICS).exists():
        return
    for name in (*RESULT_FILES, *REPORT_FILES):
        if (output / name).exists():
            raise UserError(
                f"{output / name}: would be replaced, and no evaluation with a reader "
                "wrote it; give another --output"
            )


def _refuse_results_of_others(path: Path, source: Mapping[str, Any]) -> None:
    """Refuses to replace results that name another source, or none.

    Results of former versions name no readers.
    """
    from qanet.files import parse_json

    try:
        found = parse_json(path.read_bytes())
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        found = None
    for name, value in source.items():
        other = found.get(name) if isinstance(found, dict) else None
        if other != value and (other or name != "readers"):
            other = " ".join(map(str, other)) if isinstance(other, list) else other
            what = (
                f"the results of {other}" if other else f"results that name no {name}"
            )
            raise UserError(f"{path}: holds {what}; remove it or give another --output")


def _check_output(output: Path, inputs: Sequence[Path], files: Sequence[str]) -> None:
    """Refuses a directory that is a file, and one where a result replaces an input."""
    check_directory(output)
    written = {os.path.realpath(output / name) for name in files}
    for path in inputs:
        if os.path.realpath(path) in written:
            raise UserError(f"{path}: would be replaced; give another --output")


def _report(
    examples, predictions: dict[str, str], output: Path, source: Mapping[str, str]
) -> None:
    """Prints the scores by groups, writes and draws them."""
    from qanet.evaluation.drawing import save_picture
    from qanet.evaluation.report import break_down, table

    report = break_down(examples, predictions)
    say("\n".join(table(report)))
    report.save(output, source)
    save_picture(report, output)
    log.info("report written to %s", output)
