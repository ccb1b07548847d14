"""`python -m qanet teach`: writes what readers say of a training set."""

import argparse

from qanet.commands.options import (
    add_readers,
    check_file,
    check_readers,
    load_backend,
    path_of,
)
from qanet.console import log, say
from qanet.errors import refuse_existing


def add_parser(commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "teach",
        help="write a reader's logits on a training set, for knowledge distillation",
        description="Reads a training set with a trained reader, or with several, "
        "whose probabilities are averaged, and writes the start and end logits of "
        "every token. A reader of any kind but aoa-cloze is then trained with that "
        "file as its teacher. The same command goes on where it was interrupted.",
        epilog="example:\n"
        "  python -m qanet teach --model runs/bert-6 --train train-v1.1.json \\\n"
        "      --output teacher.npz\n"
        "  python -m qanet train --preset qanet-small --train train-v1.1.json \\\n"
        "      --dev dev-v1.1.json --set training.teacher=teacher.npz",
    )
    add_readers(parser)
    parser.add_argument(
        "--train",
        required=True,
        nargs="+",
        metavar="FILE",
        help="SQuAD v1.1 or v2.0 JSON, or 'squad', 'squad_v2' or 'sample': what the "
        "student will be trained on; augmented sets may follow",
    )
    parser.add_argument(
        "--output", type=path_of, required=True, metavar="FILE.npz", help="the file"
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from qanet.datasets.soft_targets import fingerprint
    from qanet.datasets.sources import load_examples
    from qanet.teacher import parts_of

    check_file(options.output)
    # With parts beside it, it was killed before it had removed them.
    if not parts_of(options.output).exists():
        refuse_existing(options.output)
    check_readers(options.model)
    # A paraphrase that changed nothing is the same question again.
    examples = {
        fingerprint(example): example
        for file in options.train
        for example in load_examples(file, "train").examples
    }
    examples = list(examples.values())
    load_backend(options.model)

    from qanet.ensemble import load_readers
    from qanet.teacher import key_of, teach

    if parts_of(options.output).exists():
        log.info("going on with what is in %s", parts_of(options.output))
    key = key_of(options.model, examples)
    data = ", ".join(options.train)
    teach(load_readers(options.model), examples, data, options.output, key)
    size = options.output.stat().st_size / 2**20
    say(f"{options.output}: {len(examples):,} questions, {size:.1f} MiB")
