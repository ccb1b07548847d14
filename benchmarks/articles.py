"""Answers questions on whole articles, with several windows and strides.

    python benchmarks/articles.py --data dev-v1.1.json [--model READER] \
        [--windows 1000:500 1000:750 512:384] [--questions 2] [--seed 0] \
        [--output benchmarks/results/articles.json]

The context of a question is the article that its paragraph comes from: all its
paragraphs, a blank line between them. Of each article as many questions are drawn. A
window of 1000:750 has 1,000 tokens, and the next one begins 750 tokens later; --windows
defaults to the reader's own. Prints a table of scores, answers in common with the first
window, and processor time; --output gets it as JSON.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from machine import machine

from qanet.datasets.features import build_features
from qanet.datasets.squad import Example, Span, read_json, read_squad
from qanet.evaluation.evaluator import evaluate
from qanet.files import write_text
from qanet.reader import Reader

BETWEEN = "\n\n"


def on_articles(path: Path, questions: int, seed: int) -> list[Example]:
    """Questions of a SQuAD file whose contexts are whole articles.

    Args:
        path: the file.
        questions: how many of each article; of an article with fewer, all.
        seed: which ones.
    """
    by_id = {example.id: example for example in read_squad(path).examples}
    draw = np.random.default_rng(seed)
    found = []
    for article in read_json(path)["data"]:
        paragraphs = article["paragraphs"]
        contexts = [paragraph["context"] for paragraph in paragraphs]
        places = [
            (by_id[asked["id"]], sum(len(text + BETWEEN) for text in contexts[:number]))
            for number, paragraph in enumerate(paragraphs)
            for asked in paragraph["qas"]
        ]
        context = BETWEEN.join(contexts)
        chosen = draw.permutation(len(places))[:questions]
        for example, offset in (places[i] for i in sorted(chosen)):
            answers = (Span(a.text, a.start + offset) for a in example.answers)
            found.append(replace(example, context=context, answers=tuple(answers)))
    return found


def measure(reader: Reader, examples: list[Example], window: int, stride: int):
    """Scores and processor time of one way to cut, and the answers by question."""
    reader.limits = replace(reader.limits, window=window, stride=stride)
    begin = time.process_time()
    features = build_features(examples, reader.vocabulary.tokens)
    result = evaluate(reader, examples, features, progress=f"{window}:{stride}")
    row = {
        "window": window,
        "stride": stride,
        "exact_match": result.metrics["exact_match"],
        "f1": result.metrics["f1"],
        "processor_seconds": time.process_time() - begin,
    }
    return row, result.predictions


def main() -> None:
    """Parses the options and measures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, metavar="FILE")
    parser.add_argument("--model", type=Path, metavar="READER")
    parser.add_argument("--windows", nargs="+", metavar="WINDOW:STRIDE")
    parser.add_argument("--questions", type=int, default=2, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--output", type=Path, metavar="FILE")
    options = parser.parse_args()
    reader = Reader.load(options.model)
    own = f"{reader.limits.window}:{reader.limits.stride}"
    examples = on_articles(options.data, options.questions, options.seed)
    words = np.mean([len(example.context.split()) for example in examples])
    rows, first = [], None
    for cut in options.windows or [own]:
        row, answers = measure(reader, examples, *map(int, cut.split(":")))
        first = first or answers
        same = [answers[id] == text for id, text in first.items()]
        rows.append(row | {"same_as_first": 100 * float(np.mean(same))})
    print(f"{len(examples)} questions, {words:.0f} words a context")
    for row in rows:
        print(
            f"{row['window']:,} by {row['stride']:,}: exact match "
            f"{row['exact_match']:.1f}, F1 {row['f1']:.1f}, same answers "
            f"{row['same_as_first']:.1f} %, {row['processor_seconds']:.0f} s"
        )
    if options.output:
        told = machine() | {
            "data": options.data.name,
            "questions": len(examples),
            "seed": options.seed,
            "words": float(words),
            "windows": rows,
        }
        write_text(options.output, json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
