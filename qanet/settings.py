"""Sections of settings: typed, named in error messages, changed by `key=value`.

Unknown keys, wrong types and impossible values are refused.
"""

import contextlib
import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_origin

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from qanet.errors import UserError, reading
from qanet.utf8 import is_encodable

LARGEST = 100_000_000
# Levels of nested values, and characters of a value that a message shows.
DEEPEST, LONGEST_SHOWN = 20, 200
# Far above what anybody wants, and below what would fill the memory or never end.
Size = Annotated[PositiveInt, Field(le=10_000)]
SizeOrZero = Annotated[NonNegativeInt, Field(le=10_000)]
Depth = Annotated[NonNegativeInt, Field(le=100)]
Count = Annotated[NonNegativeInt, Field(le=LARGEST)]
PositiveCount = Annotated[PositiveInt, Field(le=LARGEST)]
# Steps that are planned before the first one, in 400 bytes each.
PlannedSteps = Annotated[PositiveInt, Field(le=5_000_000)]
Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Probability = Annotated[float, Field(gt=0.0, le=1.0)]


def check_rising(buckets: Sequence[int]) -> None:
    """Raises `ValueError` unless there are buckets and they rise."""
    if not buckets or list(buckets) != sorted(set(buckets)):
        raise ValueError("buckets must rise strictly, and there must be one")


def check_heads(heads: int, width: int) -> None:
    """Raises `ValueError` unless the heads share the width evenly."""
    if width % heads:
        raise ValueError(f"heads={heads} does not divide width={width}")


def check_buckets(buckets: Sequence[int], batch_tokens: int) -> None:
    """Raises `ValueError` unless there are any, they rise, and a batch holds each."""
    check_rising(buckets)
    if batch_tokens < buckets[-1]:
        raise ValueError(f"batch_tokens={batch_tokens} is less than the last bucket")


def check_plan(steps: int, batch_size: int, unit: str) -> None:
    """Raises `ValueError` where a training has more items than can be planned.

    All of them are drawn before the first step and kept in memory.
    """
    if steps * batch_size > LARGEST:
        raise ValueError(
            f"steps={steps} times batch_size={batch_size} is more than {LARGEST:,} "
            f"{unit}; lower one of them"
        )


class Section(BaseModel):
    """Settings that belong together; unknown keys are refused."""

    # Where the keys are listed.
    document: ClassVar[str] = "docs/configuration.md"

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True
    )

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_true_as_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        kind = cls.model_fields[info.field_name].annotation
        # A section within has a validator of its own.
        is_section = isinstance(value, dict) and get_origin(kind) is not dict
        if kind is not bool and not is_section and _has_bool(value):
            raise ValueError(
                f"{info.field_name}={value}: give a number, or a text in quotes"
            )
        return value

    @classmethod
    def defaults(cls, values: dict[str, Any]) -> dict[str, Any]:
        """All settings with their defaults; which there are may depend on `values`."""
        return cls.model_construct().model_dump()


def _has_bool(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return any(map(_has_bool, value))
    return isinstance(value, bool)


Kind = TypeVar("Kind", bound=Section)


def configure(
    kind: type[Kind], values: dict[str, Any], overrides: list[str], where: str
) -> Kind:
    """Makes a configuration of values and `key=value` overrides.

    Args:
        kind: the configuration's class.
        values: nested settings; those that are missing have their defaults.
        overrides: strings such as `"training.steps=1000"`; values are YAML.
        where: names the values in error messages.

    Raises:
        UserError: unknown key, wrong type or impossible value.
    """
    _check_texts(values, where)
    # On top of the defaults, so that an override may name a part of a section.
    wanted = copy.deepcopy(values)
    for override in overrides:
        _override(wanted, override)
    values = _merged(kind.defaults(wanted), values)
    for override in overrides:
        _override(values, override)
    return _validate(kind, values, where)


def load_settings(path: Path, kind: type[Kind]) -> Kind:
    """Reads settings from a YAML or JSON file, such as a run directory's.

    Raises:
        UserError: the file is missing or is not a valid configuration.
    """
    with reading(path):
        text = path.read_text(encoding="utf-8")
    try:
        values = _parse(text)
    except ValueError:
        raise UserError(f"{path}: not valid YAML or JSON") from None
    return _validate(kind, values, str(path))


def _merged(values: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A copy of nested settings with some of them changed."""
    return values | {
        key: _merged(values[key], value)
        if isinstance(value, dict) and isinstance(values.get(key), dict)
        else value
        for key, value in changes.items()
    }


def _override(values: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    parts = key.strip().split(".")
    if not separator or not all(parts):
        raise UserError(
            f"--set {override!r}: write it as key=value, "
            "for example training.steps=1000"
        )
    if not text.strip():
        # Mostly of a variable of the shell that is not set.
        raise UserError(f"--set {key}=: has no value; give one, or null for none")
    try:
        value = _parse(text)
    except ValueError:
        raise UserError(f"--set {key}: {_shown(text)} is not a value") from None
    for part in parts[:-1]:
        values = values.setdefault(part, {})
        if not isinstance(values, dict):
            raise UserError(f"--set {key}: unknown key; {part} is a single value")
    values[parts[-1]] = value


class _Loader(yaml.SafeLoader):
    """Reads YAML without aliases, by which a few bytes become millions of values."""

    def compose_node(self, parent, index):
        if self.check_event(yaml.AliasEvent):
            raise ValueError("aliases are not read")
        return super().compose_node(parent, index)


def _parse(text: str) -> Any:
    """What a YAML or JSON text stands for; raises `ValueError` where it is none."""
    # YAML reads some texts of JSON otherwise: pairs of surrogates, control characters.
    if text.startswith(('"', "[", "{")):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(text)
    try:
        return yaml.load(text, _Loader)
    # Besides its own errors nearly anything, from what makes values of the text.
    except Exception as error:
        raise ValueError(str(error)) from None


def _check_texts(value: Any, where: str, key: str = "", depth: int = 0) -> None:
    """Raises `UserError` for a text that no file can hold, and for deep nesting."""
    key = key or "the configuration"
    if depth > DEEPEST:
        raise UserError(f"{where}: {key} is nested too deeply")
    if isinstance(value, str) and ("\0" in value or not is_encodable(value)):
        raise UserError(
            f"{where}: {key}={_shown(value)}: has a NUL or half a surrogate pair; "
            "leave it out"
        )
    if isinstance(value, dict):
        for name, part in value.items():
            _check_texts(name, where, key, depth + 1)
            inside = str(name) if depth == 0 else f"{key}.{name}"
            _check_texts(part, where, inside, depth + 1)
    if isinstance(value, list | tuple):
        for part in value:
            _check_texts(part, where, key, depth + 1)


def _shown(value: Any) -> str:
    """A value in a message."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _validate(kind: type[Kind], values: Any, where: str) -> Kind:
    _check_texts(values, where)
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        # A key may have a line break in it.
        problem = " ".join(_first_problem(error, kind.document).splitlines())
        raise UserError(f"{where}: {problem}") from None


def _first_problem(error: ValidationError, document: str) -> str:
    problem = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in problem["loc"]) or "the configuration"
    if problem["type"] == "extra_forbidden":
        return f"unknown key {key}; see the list of keys in {document}"
    if problem["type"] == "missing":
        return f"{key} is missing; add it"
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return f"{key}: {message}"
    expected = {"tuple_type": "must be a list", "model_type": "must have keys"}
    message = expected.get(problem["type"], f"{message[0].lower()}{message[1:]}")
    return f"{key}={_shown(problem['input'])}: {message}"
