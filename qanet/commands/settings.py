"""`python -m qanet settings`: every setting, its default and its meaning."""

import argparse
import inspect
import re

import yaml

from qanet.console import say
from qanet.settings import Section


def add_parser(commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "settings",
        help="list every setting of a reader with its default and its meaning",
        description="Prints a table of every setting of a reader and its training in "
        "Markdown, with its default and its meaning. A preset changes some of the "
        "defaults, --set changes one.",
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    say(tables())


def tables() -> str:
    """A table for each section of the configuration, in Markdown."""
    from qanet.config import Config
    from qanet.models.registry import MODELS

    parts = []
    for name, section in Config():
        if name == "model":
            for model, entry in MODELS.items():
                title = f"## `{name}`, where `model.name` is `{model}`"
                parts.append(table(title, name, entry.settings()))
        else:
            parts.append(table(f"## `{name}`", name, section))
    return "\n\n".join(parts)


def table(title: str, name: str, section: Section) -> str:
    """The table of one section."""
    lines = [title, "", summary(type(section)), ""]
    lines += ["| key | default | meaning |", "| --- | --- | --- |"]
    meanings = described(type(section))
    for key, value in section.model_dump(mode="json").items():
        lines.append(f"| `{name}.{key}` | `{shown(value)}` | {meanings[key]} |")
    return "\n".join(lines)


def summary(section: type[Section]) -> str:
    """The first paragraph of a section's description, on one line."""
    return " ".join(inspect.cleandoc(section.__doc__).split("\n\n")[0].split())


def described(section: type[Section]) -> dict[str, str]:
    """What each setting of a section means, as its description says.

    An entry `a, b: …` describes several; what a section inherits is described where it
    is from.
    """
    meanings = {}
    for kind in reversed(section.__mro__):
        if not issubclass(kind, Section):
            continue
        _, _, attributes = inspect.cleandoc(kind.__doc__ or "").partition(
            "Attributes:\n"
        )
        for entry in re.split(r"\n(?= {4}\S)", attributes):
            names, colon, meaning = entry.partition(":")
            if colon:
                text = " ".join(meaning.split())
                meanings |= {name.strip(): text for name in names.split(",")}
    return meanings


def shown(value: object) -> str:
    """A default as it would stand after `--set key=`."""
    if isinstance(value, str):
        return value
    text = yaml.safe_dump(value, default_flow_style=True, width=1000, sort_keys=False)
    return text.removesuffix("...\n").strip()
