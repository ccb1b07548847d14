"""What an augmentation did, for people to read."""

import random
import re
from collections.abc import Sequence

from qanet.augmentation.augment import Augmented
from qanet.augmentation.paraphrase import MovedAnswer
from qanet.datasets.squad import Span

SAMPLES = 30
# Any number does: the samples of one result are always the same.
SAMPLE_SEED = 0


def summary(result: Augmented) -> list[str]:
    """The counts and shares as lines of text."""
    counts = result.counts
    unusable = {
        name.rpartition("_")[2]: count
        for name, count in counts.items()
        if name.startswith("sentences_kept_")
    }
    reasons = ", ".join(f"{name} {count:,}" for name, count in unusable.items())
    none = counts["answers_none"]
    return [
        f"{counts['contexts']:,} contexts, {counts['sentences']:,} sentences",
        f"{counts['sentences_unchanged']:,} sentences came back unchanged, "
        f"{sum(unusable.values()):,} unusable and stayed as they were ({reasons})",
        f"mean edit distance {result.edit_distance:.2f} of a sentence's words",
        f"{counts['questions']:,} questions, {result.kept_share:.1%} kept: "
        f"{counts['answers_exact']:,} answers found word for word "
        f"({result.exact_share:.1%}), {counts['answers_close']:,} by likeness, "
        f"{counts['answers_dropped']:,} not found and dropped"
        + (f", {none:,} without an answer" if none else ""),
    ]


def markdown(result: Augmented, title: str) -> str:
    """The summary and a table of samples, as a Markdown document.

    Args:
        result: What was done.
        title: The document's title.
    """
    lines = [f"# {title}", ""]
    lines += [f"- {line}" for line in summary(result)]
    lines += [
        "",
        f"{min(SAMPLES, len(result.moved))} answers drawn at random, the likest first. "
        "A score of 1 is word for word.",
        "",
        "| score | question | before | after |",
        "| --- | --- | --- | --- |",
        *(_row(moved) for moved in _samples(result.moved)),
    ]
    return "\n".join(lines) + "\n"


def _samples(moved: Sequence[MovedAnswer]) -> list[MovedAnswer]:
    drawn = random.Random(SAMPLE_SEED).sample(moved, min(SAMPLES, len(moved)))
    return sorted(drawn, key=lambda answer: -answer.score)


def _row(moved: MovedAnswer) -> str:
    after = _escaped(moved.after) + " (dropped)"
    if moved.new is not None:
        after = _marked(moved.after, moved.new)
    before = _marked(moved.before, moved.old)
    cells = (f"{moved.score:.2f}", _escaped(moved.question), before, after)
    return f"| {' | '.join(cells)} |"


def _marked(text: str, span: Span) -> str:
    """The text with a span in bold."""
    end = span.start + len(span.text)
    return (
        f"{_escaped(text[: span.start])}**{_escaped(span.text)}**{_escaped(text[end:])}"
    )


def _escaped(text: str) -> str:
    """The text on one line, with nothing that Markdown would take for its own."""
    text = re.sub(r"\s", " ", text)
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", text)
