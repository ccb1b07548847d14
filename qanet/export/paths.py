"""A configuration that travels: files by their names, without where they lay."""

from pathlib import PureWindowsPath
from typing import Any

from qanet.config import Config

# The settings that name files or directories.
PLACES = {
    "data": ("train", "dev", "augmented", "packed"),
    "vocabulary": ("vectors",),
    "model": ("contextual", "pretrained"),
    "training": ("start_from", "teacher"),
}


def without_paths(config: Config) -> Config:
    """The configuration with the name of each file in the place of its path."""
    values = config.model_dump(mode="json")
    for section, settings in PLACES.items():
        present = values[section]
        present.update({n: _named(present[n]) for n in settings if n in present})
    return Config.model_validate(values)


def _named(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _named(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_named(item) for item in value]
    # As Windows reads it, at both kinds of slash: the run may have been trained there.
    # A root or a drive has no name.
    return PureWindowsPath(value).name or value if isinstance(value, str) else value
