"""Tests of qanet.commands.settings."""

import yaml

from qanet import cli
from qanet.commands.settings import described, shown
from qanet.config import Config
from qanet.models.registry import MODELS
from qanet.settings import Section


class Base(Section):
    """Where some settings are from.

    Attributes:
        width: how wide
            it is.
        first, second: two that
            go together: always.
    """

    width: int = 1
    first: int = 2
    second: int = 3


class Derived(Base):
    """Adds one, and says something else of another.

    Attributes:
        third: a third.
        width: how wide this one is.
    """

    third: int = 4


def test_settings_mean_what_their_descriptions_say():
    assert described(Derived) == {
        "width": "how wide this one is.",
        "first": "two that go together: always.",
        "second": "two that go together: always.",
        "third": "a third.",
    }
    assert described(Base)["width"] == "how wide it is."


def test_every_setting_has_a_line_with_its_default(capsys):
    cli.main(["settings"])
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split(" | ", 2) for line in lines if line.startswith("| `")]
    found = [(key.strip("| `"), default.strip("`")) for key, default, _ in rows]
    expected = [
        (f"{name}.{key}", value)
        for name, section in Config()
        for kind in (
            [entry.settings for entry in MODELS.values()]
            if name == "model"
            else [type(section)]
        )
        for key, value in kind().model_dump(mode="json").items()
    ]
    assert [(key, yaml.safe_load(default)) for key, default in found] == expected
    assert all(meaning.strip(" |") for _, _, meaning in rows)


def test_words_are_shown_as_they_are():
    assert shown("squad") == "squad"
    assert shown(None) == "null"
    assert shown({"blocks": 1, "a": [1, 2]}) == "{blocks: 1, a: [1, 2]}"
