"""What back-translation does to a data set: speed, kept share, and right answers.

    python benchmarks/augmentation.py --train train-v1.1.json \
        --forward apertium:eng-spa --backward apertium:spa-eng --contexts 1000 \
        [--reader RUN_DIR] [--output benchmarks/results/augmentation-spa.json]

With a trained reader it also tells how often the answers that were found again are the
right ones. No gold answers exist for that, so the reader judges: of the questions that
it answers rightly on the original context, it reads the new one, and what it says is
compared with what was found. For answers that stand there word for word this shows how
much the reader itself loses on the new words.
"""

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from qanet.augmentation.answers import MATCHERS
from qanet.augmentation.augment import Augmented, augment
from qanet.augmentation.paraphrase import Passage, Settings, passages
from qanet.datasets.squad import read_squad, spread
from qanet.evaluation.metrics import f1_score
from qanet.files import write_text
from qanet.translation.cache import CachedTranslator, TranslationCache
from qanet.translation.translator import open_translator

THRESHOLDS = (0.6, 0.7, 0.75, 0.8, 0.9)
# Lower edges of the bands of scores that the reader judges one by one.
BANDS = (0.0, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
RIGHT = 0.8


def measure(
    originals: list[Passage], forward: str, backward: str, cache: TranslationCache
) -> dict[str, Augmented]:
    """Augments with every answer kept, however unlike the old one it is.

    Returns:
        The result by the way of finding answers. All have the same translations, which
        the first one makes.
    """
    translators = [
        CachedTranslator(open_translator(name), cache) for name in (forward, backward)
    ]
    return {
        matching: augment(
            originals,
            *translators,
            Settings(matching=matching, threshold=0.0),
            progress=True,
        )
        for matching in MATCHERS
    }


def kept_shares(result: Augmented) -> dict[str, float]:
    """Share of the questions that would be kept, by threshold."""
    scores = [move.score for move in result.moved if move.new is not None]
    return {
        str(threshold): round(
            sum(score >= threshold for score in scores) / len(result.moved), 4
        )
        for threshold in THRESHOLDS
    }


def judge(reader, originals: list[Passage], result: Augmented) -> dict[str, dict]:
    """What the reader says of the answers, by how they were found.

    Args:
        reader: a `Reader`, which should know the data set.
        originals: the passages, with one answer a question.
        result: what became of them.

    Returns:
        For answers found word for word and for each band of scores: questions, mean
        F1 of the reader's answer against the one found, and share with any word in
        common.
    """
    old = {e.id: e for passage in originals for e in passage.examples}
    new = {example.id: example for example in result.examples}
    moves = dict(zip(old, result.moved, strict=True))
    readings = {}
    for examples in (old, new):
        pairs = [(examples[i].question, examples[i].context) for i in new]
        answers = reader.answer_many(pairs, 1)
        readings[id(examples)] = {
            i: best.text for i, (best,) in zip(new, answers, strict=True)
        }
    groups: dict[str, list[float]] = {"exact": []}
    groups |= {f"from {band}": [] for band in BANDS}
    for i, example in new.items():
        golds = [answer.text for answer in old[i].answers]
        if f1_score(readings[id(old)][i], golds) < RIGHT:
            continue
        band = max(band for band in BANDS if band <= moves[i].score)
        group = "exact" if moves[i].exact else f"from {band}"
        found = [answer.text for answer in example.answers]
        groups[group].append(f1_score(readings[id(new)][i], found))
    return {
        group: {
            "questions": len(scores),
            "f1": round(statistics.mean(scores), 3),
            "overlap": round(statistics.mean(score > 0 for score in scores), 3),
        }
        for group, scores in groups.items()
        if scores
    }


def main() -> None:
    """Measures, prints and writes the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--train", required=True, metavar="FILE")
    parser.add_argument("--forward", required=True, metavar="TRANSLATOR")
    parser.add_argument("--backward", required=True, metavar="TRANSLATOR")
    parser.add_argument("--contexts", type=int, default=1000, metavar="N")
    parser.add_argument("--reader", type=Path, metavar="RUN_DIR")
    parser.add_argument("--output", type=Path, metavar="FILE")
    options = parser.parse_args()
    originals = spread(passages(read_squad(options.train).examples), options.contexts)
    with tempfile.TemporaryDirectory() as directory:
        cache = TranslationCache(Path(directory) / "translations.sqlite")
        results = measure(originals, options.forward, options.backward, cache)
        cache.close()
    first = next(iter(results.values()))
    report = {
        "translators": [options.forward, options.backward],
        "contexts": len(originals),
        "questions": first.counts["questions"],
        **{key: n for key, n in first.counts.items() if key.startswith("sentences")},
        "sentences_per_second": round(first.sentences_per_second, 1),
        "edit_distance": round(first.edit_distance, 4),
    }
    reader = None
    if options.reader:
        from qanet.reader import Reader

        reader = Reader.load(options.reader)
    for matching, result in results.items():
        report[matching] = {
            "exact_share": round(result.exact_share, 4),
            "kept_share": kept_shares(result),
        }
        if reader:
            report[matching]["judged"] = judge(reader, originals, result)
    text = json.dumps(report, indent=2)
    print(text)
    if options.output:
        write_text(options.output, text + "\n")


if __name__ == "__main__":
    main()
