"""`python -m qanet augment`: paraphrases a data set."""

import argparse
import contextlib
from functools import partial
from pathlib import Path

from qanet.commands.options import check_file, check_new_file, path_of, positive
from qanet.console import say
from qanet.errors import UserError


def add_parser(commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "augment",
        help="paraphrase a data set by back-translation",
        description="Translates every context of a SQuAD file into another language "
        "and back, finds the answers in the new words and writes another SQuAD file. "
        "A run that was stopped goes on where it was when it is started again, "
        "unless --runner is given.",
        epilog="example:\n"
        "  python -m qanet augment --input train-v1.1.json --output train.es.json \\\n"
        "      --forward apertium:eng-spa --backward apertium:spa-eng",
    )
    parser.add_argument(
        "--input",
        required=True,
        metavar="FILE",
        help="SQuAD v1.1 or v2.0 JSON, or 'squad' or 'squad_v2' for the training set "
        "of SQuAD 1.1 or 2.0, or 'sample'",
    )
    parser.add_argument(
        "--output",
        type=path_of,
        required=True,
        metavar="FILE.json",
        help="the file to write; FILE.report.md beside it gets counts and samples",
    )
    for way, example in (("forward", "eng-spa"), ("backward", "spa-eng")):
        parser.add_argument(
            f"--{way}",
            required=True,
            metavar="TRANSLATOR",
            help=f"translates {'there' if way == 'forward' else 'back'}: "
            f"apertium:PAIR, such as apertium:{example}, nmt:DIR, "
            "nmt-sample:TEMPERATURE:DIR, ctranslate2:DIR or "
            "ctranslate2:DIR:SOURCE:TARGET",
        )
    parser.add_argument(
        "--candidates",
        type=partial(positive, most=100),
        default=5,
        metavar="K",
        help="how many translations of a sentence one is drawn from, in each "
        "direction, if the translator gives so many (default: %(default)s)",
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
        type=positive,
        metavar="N",
        help="take only N contexts, evenly spread, to try it out",
    )
    parser.add_argument(
        "--cache",
        type=path_of,
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
    parser.add_argument(
        "beam_options",
        nargs="*",
        metavar="-- OPTION",
        help="options of Apache Beam, for --runner",
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from qanet.augmentation.paraphrase import Settings, passages
    from qanet.augmentation.report import markdown, summary
    from qanet.datasets.sources import load_examples
    from qanet.datasets.squad import spread, write_squad
    from qanet.files import write_text

    report, cache = _places(options)
    if options.beam_options and not options.runner:
        raise UserError(
            f"{options.beam_options[0]}: options of Apache Beam go with --runner"
        )
    if options.runner and options.cache:
        raise UserError(
            "--cache does not go with --runner, whose workers may be on many machines; "
            "give one of them"
        )
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
        result = _augment_here(
            originals, options.forward, options.backward, settings, cache
        )
    if not result.examples:
        raise UserError(
            f"{options.input}: no question kept its answer; try a better translator "
            "or a lower --threshold"
        )
    names = " and ".join(result.translators)
    write_text(report, markdown(result, f"{options.input} by {names}"))
    write_squad(options.output, result.examples)
    say("\n".join(summary(result)))
    say(f"written to {options.output}, with samples in {report}")


def _places(options: argparse.Namespace) -> tuple[Path, Path]:
    """Where the report is written, and where translations are kept."""
    check_new_file(options.output, [options.input])
    # FILE of FILE.json; another ending is a part of the name.
    name = options.output.name.removesuffix(".json")
    report = options.output.with_name(f"{name}.report.md")
    check_file(report)
    cache = options.cache or report.with_name(f"{name}.translations.sqlite")
    check_file(cache, "--cache", [options.input, options.output, report])
    return report, cache


def _augment_here(originals, forward: str, backward: str, settings, cache: Path):
    """Augments in this process, with all translations kept in a file."""
    from qanet.augmentation.answers import require_matchers
    from qanet.augmentation.augment import augment
    from qanet.translation.cache import CachedTranslator, TranslationCache
    from qanet.translation.translator import open_translator

    # Before a translator is waited for.
    require_matchers()
    translators = list(map(open_translator, (forward, backward)))
    with contextlib.closing(TranslationCache(cache)) as opened:
        there, back = (CachedTranslator(each, opened) for each in translators)
        return augment(originals, there, back, settings, progress=True)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return value
