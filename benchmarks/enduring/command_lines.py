"""Command lines: the options of all commands, with good values and others."""

import argparse
import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from unittest import mock

from enduring.commands import complaint, new_directory, nothing_long
from enduring.mutations import ODD_VALUES, of_bytes
from enduring.watching import Attempt

FILES = (
    *("export", "run", "train.json", "dev.json", "packed.npz", "predictions.json"),
    *("vectors.txt", "questions.jsonl", "context.txt", "soft.npz"),
)
NUMBERS = (
    *("0", "1", "2", "-1", "0.5", "1e3", "nan", "inf", "9" * 20, "9" * 5000, "١"),
    *("65535", "65536", "true", "", " 1", "1_000"),
)
PLACES = (
    *("new", "new.json", "new/er/est", ".", "", "/dev/null", "/proc/new", "-"),
    *("dev.json/new", "a" * 300, "ä", "a\nb", "\udcff", " ", "new.npz", "absent"),
)
NAMES = (
    *("sample", "squad", "squad_v2", "qanet-tiny", "bert", "qanet", "onnx", "mlm"),
    *(
        "nmt:run",
        "apertium:eng-spa",
        "ctranslate2:run",
        "nmt-sample:x:run",
        "nmt:",
        ":",
    ),
    *("Who lives?", "who " * 500, "?", "a=export", "b=export", "=", "DirectRunner"),
)
TRANSLATORS = ("nmt:run", "apertium:eng-spa", "ctranslate2:run", "nmt-sample:1:run")
DATA = ("train.json", "dev.json", "sample")
# What is good, by what options are called; of others a file.
LIKELY = {
    "preset": ("qanet-tiny", "qanet", "bert", "aoa", "slqa"),
    "model": ("export", "export", "run"),
    "output": ("new", "new.json", "new.npz"),
    "cache": ("new", "new.sqlite"),
    "question": ("Who lives?", "In which year?"),
    **dict.fromkeys(("translator", "forward", "backward"), TRANSLATORS),
    **dict.fromkeys(("train", "dev", "data", "text"), DATA),
    "vectors": ("vectors.txt",),
    "packed": ("packed.npz",),
    "predictions": ("predictions.json",),
    "input": (*DATA, "questions.jsonl", "context.txt"),
}
# Of hosts no other, for their names would be asked for in a network.
HOSTS = ("127.0.0.1", "::1", "", "localhost..", "a" * 70, "\udcff", "1.2.3.4.5.6\n")


@contextlib.contextmanager
def command_lines(base: Path, scratch: Path) -> Iterator[Attempt]:
    """Commands with drawn options; what takes long is not begun."""
    from qanet.cli import make_parser

    os.environ["XDG_CACHE_HOME"] = str(scratch)
    commands = _leaves(make_parser())
    keys = _keys()

    def attempt(random: Random) -> str:
        words, parser = random.choice(commands)
        line = [*words, *_drawn(parser, random, keys)]
        if random.random() < 0.05:
            line.insert(random.randrange(len(line) + 1), random.choice(NAMES))
        if random.random() < 0.05:
            del line[random.randrange(len(line))]
        line = [_harmless(word) for word in line]
        with new_directory(base, scratch, *FILES):
            return complaint(line, given=b'{"question": "Who?", "context": "Bo."}\n')

    # Its own reader would be asked much by who gives no other.
    shipped = mock.patch("qanet.shipped.SHIPPED", base / "export")
    with nothing_long(), shipped:
        yield attempt


def _leaves(parser: argparse.ArgumentParser) -> list[tuple[list[str], object]]:
    """The commands without further ones below them, and what parses their options."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return [
                ([name, *words], leaf)
                for name, below in action.choices.items()
                for words, leaf in _leaves(below)
            ]
    return [([], parser)]


def _drawn(parser: argparse.ArgumentParser, random: Random, keys: list[str]):
    """Options of a command with their values, mostly those that it needs."""
    for action in parser._actions:
        share = 0.98 if action.required else 0.3
        # What prints and ends; and what a file is asked for without it.
        if action.dest in ("help", "version"):
            share = 0.005
        if action.dest in ("level", "beam_options", "runner"):
            share = 0.05
        if action.dest in ("model", "question", "context_file", "text", "data"):
            share = 0.8
        if random.random() > share:
            continue
        if action.option_strings:
            yield random.choice(action.option_strings)
        if action.nargs != 0:
            most = 3 if action.nargs in ("+", "*") else 1
            for _ in range(random.randint(1, most)):
                yield _value(action, random, keys)


def _value(action: argparse.Action, random: Random, keys: list[str]) -> str:
    """A value for an option, of which about half are good."""
    if action.dest == "set":
        return _setting(random, keys)
    if action.dest == "host":
        return random.choice(HOSTS)
    if action.dest == "port":
        return random.choice(("0", *NUMBERS))
    if action.choices and random.random() < 0.8:
        return random.choice([*map(str, action.choices)])
    likely = LIKELY.get(action.dest, FILES)
    if action.type not in (None, Path) and action.dest != "model":
        likely = ("1", "2", "0.5") if action.type is float else ("1", "2", "100")
    if random.random() < 0.75:
        word = random.choice(likely)
    else:
        word = random.choice(random.choice((FILES, NUMBERS, PLACES, NAMES)))
    return _changed(word, random) if random.random() < 0.1 else word


def _setting(random: Random, keys: list[str]) -> str:
    """An override of a setting, as `--set` takes it."""
    key = random.choice(keys) if random.random() < 0.9 else random.choice(PLACES)
    value = random.choice((*ODD_VALUES[:40], *NUMBERS, *PLACES, *FILES, *_YAML))
    line = f"{key}={value}"
    return _changed(line, random) if random.random() < 0.1 else line


_YAML = (
    *(
        "!!int ''",
        "!!float ''",
        "!!bool x",
        "!!timestamp x",
        "!!python/none",
        "&a [*a]",
    ),
    *(
        "? [a]",
        "{[a]: b}",
        "[" * 3000,
        "- - - a",
        "a: b: c",
        "2001-99-99",
        "0o8",
        "!!set",
    ),
    *(
        "!!binary x",
        "'",
        '"\\0"',
        '"\\ud800"',
        "%",
        "@",
        "|",
        ">\n a",
        "1:99",
        "=",
        "<<",
    ),
    *("{<<: 1}", "{1: 2}", "[1, [2, [3]]]", "*a", "0x", "0b", "._", ".", "-", "12e03"),
)


def _keys() -> list[str]:
    """The keys of all settings, and some that there are not."""
    from qanet.config import Config
    from qanet.models.registry import MODELS
    from qanet.pretraining.config import BiLMPretrainingConfig, MLMPretrainingConfig
    from qanet.translation.config import TranslationConfig

    keys = ["model.name", "data.mix.new", "model.new.er", "new", "", "a..b", "data"]
    sections = [Config(), *(entry.settings() for entry in MODELS.values())]
    others = MLMPretrainingConfig, BiLMPretrainingConfig, TranslationConfig
    documents = [section.model_dump(mode="json") for section in sections]
    documents += [kind.defaults({}) for kind in others]
    for document in documents:
        for name, value in document.items():
            keys += (
                [f"{name}.{key}" for key in value] if isinstance(value, dict) else []
            )
            keys += [name, f"model.{name}", f"{name}.{name}"]
    return [*dict.fromkeys(keys)]


def _changed(word: str, random: Random) -> str:
    """A word with some of its bytes changed, as a shell would hand it over."""
    data = of_bytes(word.encode("utf-8", "surrogateescape"), random)
    # No argument of a process has a NUL in it.
    return data.replace(b"\0", b"").decode("utf-8", "surrogateescape")


def _harmless(word: str) -> str:
    """The word, unless it names a place outside of the working directory."""
    if word in PLACES or json.dumps(word) in ODD_VALUES:
        return word
    return "elsewhere" if re.search(r"(^|[^\w])/|\.\.|~", word) else word
