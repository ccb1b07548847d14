"""The command line: parses, calls, prints.

Three doors lead here: `train.py`, `evaluate.py` and `python -m qanet`. Heavy imports
happen inside the commands, so that `--help` and mistakes answer at once.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from qanet.commands import translate
from qanet.errors import UserError

RUNS = Path("runs")
SHOWN_QUESTIONS = 5


def train(arguments: Sequence[str] | None = None) -> None:
    """`python train.py`."""
    parser = argparse.ArgumentParser(
        prog="train.py",
        description="Trains a reader on a data set in the SQuAD format. Without "
        "options it trains preset qanet-tiny on the sample in data/sample.",
        epilog="example: python train.py --preset qanet-small --train train-v1.1.json "
        "--dev dev-v1.1.json --vectors glove.840B.300d.txt --set training.steps=5000",
    )
    _add_configuration(parser, "qanet-tiny")
    parser.add_argument(
        "--features",
        metavar="FILE",
        help="what `python -m qanet features` made, in the place of --train, --dev "
        "and --vectors",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="run directory (default: a new one below runs/)",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the run in --output from its newest checkpoint, with the "
        "settings it was started with",
    )
    _run(_train, parser.parse_args(arguments))


def evaluate(arguments: Sequence[str] | None = None) -> None:
    """`python evaluate.py`."""
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
        help="SQuAD v1.1 or v2.0 JSON, or 'squad' for the dev set of SQuAD 1.1",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="where predictions.json, nbest.json and metrics.json go "
        "(default: evaluation/ in the run directory)",
    )
    _run(_evaluate, parser.parse_args(arguments))


def main(arguments: Sequence[str] | None = None) -> None:
    """`python -m qanet`."""
    parser = argparse.ArgumentParser(
        prog="python -m qanet", description="Uses a trained reader."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    answer = commands.add_parser(
        "answer",
        help="answer a question on a text file",
        description="Answers a question on a text of any length.",
    )
    answer.add_argument("--model", type=Path, required=True, metavar="RUN_DIR")
    answer.add_argument(
        "--context-file",
        required=True,
        metavar="FILE",
        help="the passage, a text file in UTF-8; - reads standard input",
    )
    answer.add_argument("--question", required=True, metavar="TEXT")
    answer.add_argument(
        "--top-k", type=_positive, default=1, metavar="K", help="number of answers"
    )
    answer.add_argument("--json", action="store_true", help="print JSON")
    answer.set_defaults(command=_answer)
    features = commands.add_parser(
        "features",
        help="pack a data set and its vectors into one file",
        description="Packs all that a training reads of its data into one compressed "
        "file, for a machine without TensorFlow, network or much room: train there "
        "with train.py --features FILE. Keeps the vectors of the data's words only, "
        "unless vocabulary.extra_vectors is set.",
    )
    _add_configuration(features, "qanet")
    features.add_argument(
        "--output", type=Path, required=True, metavar="FILE.npz", help="the file"
    )
    features.set_defaults(command=_features)
    translate.add_parser(commands)
    augment = commands.add_parser(
        "augment",
        help="tell a data set in other words, by translating it there and back",
        description="Translates every context of a SQuAD file into another language "
        "and back, finds the answers in the new words and writes another SQuAD file. "
        "A run that was stopped goes on where it was when it is started again, "
        "unless --runner is given.",
        epilog="example: python -m qanet augment --input train-v1.1.json --output "
        "train.es.json --forward apertium:eng-spa --backward apertium:spa-eng",
    )
    _add_augmentation(augment)
    augment.set_defaults(command=_augment)
    own, beam_options = _parted(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(own)
    if beam_options is not None:
        if not getattr(options, "runner", None):
            parser.error("only after augment --runner NAME may -- and options follow")
        options.beam_options = beam_options
    _run(options.command, options)


def _parted(arguments: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """What stands before the first `--` and, if there is one, what stands after it."""
    arguments = list(arguments)
    if "--" not in arguments:
        return arguments, None
    place = arguments.index("--")
    return arguments[:place], arguments[place + 1 :]


def _add_augmentation(parser: argparse.ArgumentParser) -> None:
    """The options of `augment`."""
    parser.add_argument(
        "--input",
        required=True,
        metavar="FILE",
        help="SQuAD v1.1 or v2.0 JSON, or 'squad' for the training set of SQuAD 1.1",
    )
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="FILE.json",
        help="the file to write; FILE.report.md beside it gets counts and samples",
    )
    for way, example in (("forward", "eng-spa"), ("backward", "spa-eng")):
        parser.add_argument(
            f"--{way}",
            required=True,
            metavar="TRANSLATOR",
            help=f"translates {'there' if way == 'forward' else 'back'}, for example "
            f"apertium:{example}",
        )
    parser.add_argument(
        "--candidates",
        type=_positive,
        default=5,
        metavar="K",
        help="translations of a sentence that one is drawn from, in either direction, "
        "where the translator knows so many (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, default=42, metavar="N", help="fixes the draws"
    )
    parser.add_argument(
        "--matching",
        choices=("edges", "bigrams"),
        default="edges",
        help="how an answer that does not stand there word for word is found: by the "
        "likeness of its edges and its whole, or the paper's way (default: "
        "%(default)s)",
    )
    parser.add_argument(
        "--threshold",
        type=_share,
        default=0.75,
        metavar="SCORE",
        help="lowest likeness of an answer that is kept, 0 to 1 (default: %(default)s)",
    )
    parser.add_argument(
        "--contexts",
        type=_positive,
        metavar="N",
        help="take only N contexts, evenly spread, to try it out",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        metavar="FILE",
        help="where translations are kept (default: FILE.translations.sqlite beside "
        "the output)",
    )
    parser.add_argument(
        "--runner",
        metavar="NAME",
        help="run as an Apache Beam pipeline, by DirectRunner, FlinkRunner, "
        "SparkRunner, DataflowRunner, ...; options for it come last, after --, for "
        "example -- --direct_running_mode=multi_processing --direct_num_workers=8",
    )
    parser.set_defaults(beam_options=[])


def _add_configuration(parser: argparse.ArgumentParser, preset: str) -> None:
    """The options that `_configured` makes a configuration of."""
    from qanet.config import preset_names

    parser.add_argument(
        "--preset",
        default=preset,
        metavar="NAME",
        help=f"one of {', '.join(preset_names())} (default: %(default)s)",
    )
    for option, purpose in (("--train", "train on"), ("--dev", "evaluate on")):
        parser.add_argument(
            option,
            metavar="FILE",
            help=f"SQuAD v1.1 or v2.0 JSON to {purpose}, or 'squad' to download "
            "SQuAD 1.1 (default: the preset's)",
        )
    parser.add_argument(
        "--vectors",
        metavar="FILE",
        help="pretrained word vectors as text, GloVe, fastText or word2vec, plain or "
        ".gz (default: the preset's; none trains its own)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change one setting, for example training.steps=1000; may be repeated",
    )


def _run(command: Callable[[argparse.Namespace], None], options) -> None:
    """Runs a command; a user's mistake ends it with one line and exit code 2."""
    # TensorFlow reports on the machine at every start; only its errors matter here.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        command(options)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)


def _train(options: argparse.Namespace) -> None:
    from qanet.run import Run

    if options.resume:
        run = Run(options.output or RUNS / options.preset)
        config = run.load_config()
        for option in ("train", "dev", "vectors", "features", "set"):
            if getattr(options, option):
                raise UserError(
                    f"--{option} does not go with --resume, which continues with the "
                    f"settings in {run.config_path}"
                )
    else:
        if options.features and (options.train or options.dev or options.vectors):
            raise UserError(
                "--features takes the place of --train, --dev and --vectors; "
                "give it alone"
            )
        config = _configured(options, "data.features", options.features)
        is_first = True
        if config.distribution.strategy == "multi_worker":
            from qanet.training.cluster import is_first_worker

            is_first = is_first_worker()
            if not options.output:
                raise UserError(
                    "distribution.strategy=multi_worker: give --output, a directory "
                    "that all workers see"
                )
        run = Run(options.output or _new_directory(RUNS / options.preset))
        _check_output(run.directory)
        if is_first and run.config_path.exists():
            raise UserError(
                f"{run.directory}: already holds a run; continue it with --resume or "
                "give another --output"
            )

    from qanet.training.session import train_run

    report = train_run(config, run, resume=options.resume)
    if report is None:
        return
    print(f"\nexact match {report.metrics['exact_match']:.1f}", end="  ")
    print(f"F1 {report.metrics['f1']:.1f}  on {report.metrics['total']} questions\n")
    for example, answer in report.samples(SHOWN_QUESTIONS):
        gold = example.answers[0].text if example.answers else "(no answer)"
        print(f"question:  {example.question.strip()}")
        print(f"gold:      {gold}\npredicted: {answer.text}\n")
    print(f"run directory: {run.directory}")


def _configured(options: argparse.Namespace, key: str, value: object):
    """The preset with one setting of the command's own and those of the options."""
    from qanet.config import load_preset

    files = {
        "data.train": options.train,
        "data.dev": options.dev,
        "vocabulary.vectors": options.vectors,
    }
    overrides = [f"{k}={json.dumps(file)}" for k, file in files.items() if file]
    own = f"{key}={json.dumps(value)}"
    return load_preset(options.preset, [own, *options.set, *overrides])


def _features(options: argparse.Namespace) -> None:
    from qanet.datasets.training_data import read_training_data, save_compact

    config = _configured(options, "vocabulary.extra_vectors", 0)
    data = read_training_data(config, RUNS / "cache")
    save_compact(options.output, data)
    size = options.output.stat().st_size / 2**20
    print(
        f"{options.output}: {len(data.train):,} questions to train on, "
        f"{len(data.dev):,} of dev, {len(data.vocabulary.words):,} words, "
        f"{size:.1f} MiB"
    )


def _augment(options: argparse.Namespace) -> None:
    from qanet.augmentation.paraphrase import Settings, passages, spread
    from qanet.augmentation.report import markdown, summary
    from qanet.datasets.sources import load_examples
    from qanet.datasets.squad import write_squad
    from qanet.files import write_text
    from qanet.translation.translator import open_translator

    if options.output.is_dir():
        raise UserError(f"--output {options.output}: is a directory; give a file")
    if options.runner and options.cache:
        raise UserError(
            "--cache does not go with --runner, whose workers may be on many machines; "
            "give one of them"
        )
    forward = open_translator(options.forward)
    backward = open_translator(options.backward)
    originals = passages(load_examples(options.input, "train").examples)
    if options.contexts:
        originals = spread(originals, options.contexts)
    settings = Settings(
        options.candidates, options.seed, options.matching, options.threshold
    )
    if options.runner:
        from qanet.augmentation.pipeline import augment_with_beam

        result = augment_with_beam(
            originals,
            options.forward,
            options.backward,
            settings,
            options.runner,
            options.beam_options,
        )
    else:
        from qanet.augmentation.augment import augment
        from qanet.translation.cache import CachedTranslator, TranslationCache

        cache = TranslationCache(
            options.cache or options.output.with_suffix(".translations.sqlite")
        )
        result = augment(
            originals,
            CachedTranslator(forward, cache),
            CachedTranslator(backward, cache),
            settings,
            progress=True,
        )
    if not result.examples:
        raise UserError(
            f"{options.input}: no question kept its answer; try a better translator "
            "or a lower --threshold"
        )
    report = options.output.with_suffix(".report.md")
    title = f"{options.input} by {forward.name} and {backward.name}"
    write_text(report, markdown(result, title))
    write_squad(options.output, result.examples)
    print("\n".join(summary(result)))
    print(f"written to {options.output}, with samples in {report}")


def _check_output(directory: Path) -> None:
    if directory.exists() and not directory.is_dir():
        raise UserError(f"--output {directory}: is a file; give a directory")


def _new_directory(wanted: Path) -> Path:
    """`wanted`, or the first of `wanted-2`, `wanted-3`, ... that is free."""
    directory, number = wanted, 2
    while directory.exists():
        directory = wanted.with_name(f"{wanted.name}-{number}")
        number += 1
    return directory


def _evaluate(options: argparse.Namespace) -> None:
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
        _check_output(output)
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


def _answer(options: argparse.Namespace) -> None:
    from qanet.reader import Reader

    context = _read_text(options.context_file)
    reader = Reader.load(options.model)
    (answers,) = reader.answer_many([(options.question, context)], options.top_k)
    for answer in answers:
        if options.json:
            fields = ("text", "start", "end", "score")
            record = {field: getattr(answer, field) for field in fields}
            print(json.dumps(record, ensure_ascii=False))
        else:
            # One line an answer, also where it runs over a line break.
            print(f"{answer.score:6.1%}  {' '.join(answer.text.split())}")


def _read_text(path: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        # Not read_text: it would turn "\r\n" into "\n" and so shift the offsets.
        return raw.decode("utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: is not UTF-8 (byte {error.start}); save it as UTF-8"
        ) from None


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return value
