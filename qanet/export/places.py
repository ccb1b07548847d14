"""A configuration that travels: files by their names, without where they lay."""

from pathlib import Path
from typing import Any

from qanet.config import Config


def without_places(config: Config) -> Config:
    """The configuration with the name of each file in the place of its path."""
    return Config.model_validate(_named(config.model_dump(mode="json")))


def _named(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _named(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_named(item) for item in value]
    return Path(value).name if isinstance(value, str) else value
