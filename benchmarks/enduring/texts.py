"""Texts that break readers: where answers lie, in Keras, SavedModel and ONNX.

A small reader is trained on the sample for a moment, exported, and asked in all three
forms about texts of rare characters. An answer must be the text at its offsets, and all
forms must give the same one, unless two spans' scores are nearly equal.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from enduring.findings import Finding
from qanet.console import progress_bar
from qanet.decoding import Answer
from qanet.reader import Reader
from qanet.run import Run

ROOT = Path(__file__).parents[2]
TRIES = 50
# Characters without a blank, of one word and of signs that are a word each.
LONG, SIGNS = 1_000_000, 100_000
# Scores of one span in two forms differ by less: a table of words has 16 bits.
TOLERANCE = 0.005
# Spans that are compared where the best are not the same.
SPANS = 20

TRAINING = ("training.steps=100", "training.evaluate_every=100", "data.dev=sample")

# What the words of a kind of text are drawn from; a word may hold several.
KINDS = {
    "combining marks": [*"aeinoß", *map(chr, range(0x300, 0x330)), "\u20dd", "ộ"],
    "right to left": [
        *"אבגדהمرحباالعالم",
        "\u200f",
        "\u202b",
        "\u202c",
        "\u0651",
        "12",
    ],
    "emoji": ["👩‍👩‍👧", "🏳️‍🌈", "🇩🇪", "👍🏿", "1️⃣", "😀", "\U0001f9d1", "a", "️"],
    "zero width": ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", *"bcd"],
    "control characters": [*map(chr, [*range(32), *range(127, 160)]), "\u2028", *"fg"],
    "without spaces": [*"東京都日本語한국어ไทย", "。", "、", "\u3000", "5"],
    "planes": ["𝒜", "𠀋", "\U0010ffff", "\ue000", "\ufffe", "\u0378", *"xyz"],
}


def run(seed: int) -> list[Finding]:
    """Trains, exports, and asks about every kind of text."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as temporary:
        answering = forms(Path(temporary))
        findings = []
        for kind, parts in progress_bar(iterable=KINDS.items(), unit="kind"):
            pairs = [(text(rng, parts, 60), text(rng, parts, 8)) for _ in range(TRIES)]
            findings.append(compare(f"texts of {kind}", pairs, answering))
        long = ["a" * LONG, "\u0301" * LONG, "東" * SIGNS, "-" * SIGNS, "🇩" * SIGNS]
        pairs = [(context, "Who?") for context in long]
        what = f"{LONG:,} characters, or {SIGNS:,} signs, without a blank"
        findings.append(compare(what, pairs, answering))
    return findings


def text(rng: np.random.Generator, parts: Sequence[str], words: int) -> str:
    """Words of one to six parts with blanks of several kinds between them."""
    drawn = [
        "".join(parts[i] for i in rng.integers(len(parts), size=rng.integers(1, 7)))
        for _ in range(rng.integers(1, words + 1))
    ]
    # A word in every text, for what has none is refused.
    between, end = (" a ", " a") if rng.random() < 0.5 else (" ", "\n\u00a0a")
    return between.join(drawn) + end


Answering = Callable[[str, str, int], Sequence[Answer]]


def forms(directory: Path) -> dict[str, Answering]:
    """A reader in its three forms, made in a directory."""
    run = directory / "run"
    settings = [word for setting in TRAINING for word in ("--set", setting)]
    _python("train.py", *settings, "--output", run)
    for form in ("onnx", "saved_model"):
        arguments = ("--model", run, "--format", form, "--output", directory / form)
        _python("-m", "qanet", "export", *arguments)
    return {
        "Keras": _answering(Reader.of(Run(run).load(), as_they_come=True)),
        "ONNX": _answering(Reader.load(directory / "onnx")),
        "SavedModel": _saved_model(directory / "saved_model"),
    }


def _python(*arguments: str | Path) -> None:
    process = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True
    )
    if process.returncode:
        sys.exit(process.stderr)


def _answering(reader: Reader) -> Answering:
    def answer(question, context, top_k):
        (answers,) = reader.answer_many([(question, context)], top_k)
        return answers

    return answer


def _saved_model(directory: Path) -> Answering:
    import tensorflow as tf

    signature = tf.saved_model.load(str(directory)).signatures["serving_default"]

    def answer(question, context, top_k):
        found = signature(
            context=tf.constant([context]),
            question=tf.constant([question]),
            top_k=tf.constant(top_k),
        )
        columns = [found[name][0].numpy() for name in ("answer", "start", "end")]
        scores = found["score"][0].numpy()
        return [
            Answer(words.decode(), int(start), int(end), float(score))
            for words, start, end, score in zip(*columns, scores, strict=True)
            if score > 0.0
        ]

    return answer


def compare(
    what: str, pairs: Sequence[tuple[str, str]], answering: dict[str, Answering]
) -> Finding:
    """Asks all forms; the first is the one that the others are compared with.

    Args:
        what: for the table.
        pairs: contexts and questions.
        answering: the forms by their names.
    """
    finding = Finding(what, len(pairs))
    for number, (context, question) in enumerate(pairs):
        found = {}
        for form, answer in answering.items():
            found[form] = answers = answer(question, context, SPANS)
            for one in answers:
                if context[one.start : one.end] != one.text:
                    finding.wrong.append(f"text {number}, {form}: {one} is not there")
        (first, expected), *others = found.items()
        finding.wrong += [
            f"text {number}: {form} answers {answers[:1]}, {first} {expected[:1]}"
            for form, answers in others
            if not agree(expected, answers)
        ]
    return finding


def agree(expected: Sequence[Answer], answers: Sequence[Answer]) -> bool:
    """Whether the best answer of one form is as good as the best in another."""
    if not expected or not answers:
        return not expected and not answers
    best = answers[0]
    scores = [e.score for e in expected if (e.start, e.end) == (best.start, best.end)]
    return bool(scores) and all(
        abs(score - other) < TOLERANCE
        for score in scores
        for other in (best.score, expected[0].score)
    )
