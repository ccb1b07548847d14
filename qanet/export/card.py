"""The model card of an export: what the reader is, learned from, scores and is for.

After Mitchell et al., Model Cards for Model Reporting, 2019. A part comes from the run,
the rest from a file of facts that no run knows.
"""

import csv
from pathlib import Path
from typing import Annotated, ClassVar

import yaml
from pydantic import Field

from qanet import __version__
from qanet.config import Config
from qanet.errors import UserError, reading
from qanet.export.paths import without_paths
from qanet.run import Run
from qanet.settings import Section, load_settings

CARD_FILE = "README.md"
UNKNOWN = "not stated"
Percentage = Annotated[float, Field(ge=0.0, le=100.0)]


class Scores(Section):
    """What a reader scores on a data set, in per cent."""

    exact_match: Percentage
    f1: Percentage


class Facts(Section):
    """What no run knows of itself; texts are Markdown.

    Attributes:
        name: what the reader is called.
        licence: the licence of the weights.
        data: where the data come from, and their licence.
        vectors: where the word vectors come from, and their licence.
        command: the command that trained the reader.
        hardware: what it was trained on.
        training: how long, where the run is not the only one.
        seed: of all runs, likewise.
        use: what it is meant for.
        weaknesses: known ones.
        scores: on other data than the run's dev, by a name of the data.
    """

    document: ClassVar[str] = "docs/export.md"

    name: str = "A reader"
    licence: str = UNKNOWN
    data: str = UNKNOWN
    vectors: str = UNKNOWN
    command: str = UNKNOWN
    hardware: str = UNKNOWN
    training: str | None = None
    seed: str | None = None
    use: str = UNKNOWN
    weaknesses: tuple[str, ...] = ()
    scores: dict[str, Scores] = Field({})


def read_facts(path: Path | None) -> Facts:
    """Reads a YAML or JSON file of facts; without a file nothing is stated.

    Raises:
        UserError: the file cannot be read, has an unknown key or a wrong value.
    """
    return load_settings(path, Facts) if path else Facts()


def model_card(run: Run, facts: Facts) -> str:
    """The card of a run's reader, in Markdown.

    Raises:
        UserError: a file of the run is missing or damaged.
    """
    config = without_paths(run.load_config())
    settings = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)
    sections = [
        f"# {facts.name}",
        "Reading comprehension: a question and a passage in, the answer's span out. "
        f"Exported by `qanet` {__version__}. `SHA256SUMS` holds the checksums of the "
        "files.",
        _table(["", ""], _properties(run, config, facts)),
        f"## Intended use\n\n{facts.use.strip()}",
        "## Known weaknesses",
        "\n".join(f"- {_line(text)}" for text in facts.weaknesses) or UNKNOWN,
        "## Scores",
        _table(["data", "exact match", "F1"], _scores(run, config, facts)),
        f"## Command\n\n```\n{facts.command.strip()}\n```",
        f"## Configuration\n\n```yaml\n{settings}```",
    ]
    return "\n\n".join(sections) + "\n"


def _properties(run: Run, config: Config, facts: Facts) -> list[list[str]]:
    no_answer = "never given"
    if config.data.no_answer:
        no_answer = f"given where its probability is above {run.load_threshold():.3g}"
    return [
        ["model", config.model.name],
        ["licence", facts.licence],
        ["trained on", config.data.packed or config.data.train],
        ["data", facts.data],
        ["word vectors", _vectors(config)],
        ["their origin", facts.vectors],
        ["training", facts.training or _duration(run, config.training.batch_size)],
        ["hardware", facts.hardware],
        ["seed", facts.seed or str(config.training.seed)],
        ["no answer", no_answer],
    ]


def _vectors(config: Config) -> str:
    if config.data.packed:
        return "as packed"
    return ", ".join(config.vocabulary.vectors) or "its own"


def _scores(run: Run, config: Config, facts: Facts) -> list[list[str]]:
    rows = [(name, s.exact_match, s.f1) for name, s in facts.scores.items()]
    if metrics := run.load_metrics():
        total, *scores = (metrics[name] for name in ("total", "exact_match", "f1"))
        dev = config.data.packed or config.data.dev
        name = f"dev: {dev}, {int(total):,} questions, before the export"
        rows.insert(0, (name, *scores))
    return [[name, f"{float(em):.1f}", f"{float(f1):.1f}"] for name, em, f1 in rows]


def _duration(run: Run, batch_size: int) -> str:
    """How long the training took, by the last row of its history."""
    history = run.history_path
    if not history.is_file():
        return UNKNOWN
    try:
        with reading(history), history.open(encoding="utf-8", newline="") as file:
            *_, last = csv.DictReader(file)
        steps, seconds = int(last["step"]), float(last["seconds"])
    except (ValueError, KeyError, TypeError, csv.Error):
        raise UserError(
            f"{history}: damaged; remove it, then the model card states no duration"
        ) from None
    minutes, hours = f"{seconds / 60:.1f} minutes", f"{seconds / 3600:.1f} hours"
    took = minutes if seconds < 3600 else hours
    return f"{steps:,} steps of {batch_size} questions in {took}"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")


def _line(text: str) -> str:
    return " ".join(text.split())
