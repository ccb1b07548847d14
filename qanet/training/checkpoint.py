"""Resumable states of a training: written atomically, damaged ones recognised."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import keras

from qanet.errors import UserError
from qanet.files import DamagedFile, pack_json, read_arrays, unpack_json
from qanet.weights import assign_variables, save_variables

KEPT = 2

# All that a training changes, by name.
Variables = Mapping[str, keras.Variable]


@dataclass
class Progress:
    """Where a training stands, beside its variables.

    Attributes:
        step: finished optimizer steps.
        examples: examples that were trained on.
        seconds: time spent on training so far.
        best_score: the best score so far; none before the first evaluation.
        evaluations_since_best: evaluations after the one that gave it.
        history: one row an evaluation.
        round_steps: steps since the last evaluation.
        round_seconds: their time.
        round_loss: the sum of their losses.
        gradient_norm: that of the last gradient before clipping.
    """

    step: int = 0
    examples: int = 0
    seconds: float = 0.0
    best_score: float | None = None
    evaluations_since_best: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    round_steps: int = 0
    round_seconds: float = 0.0
    round_loss: float = 0.0
    gradient_norm: float = 0.0


def save_checkpoint(directory: Path, variables: Variables, progress: Progress) -> None:
    """Writes `step-N.npz` and removes all but the newest few."""
    state = pack_json(asdict(progress))
    path = directory / f"step-{progress.step:08d}.npz"
    save_variables(path, variables, progress=state)
    for old in checkpoints(directory)[KEPT:]:
        old.unlink()


def restore_checkpoint(directory: Path, variables: Variables) -> Progress | None:
    """Restores the newest checkpoint that is whole.

    Returns:
        The progress it holds, or `None` where there is no checkpoint.

    Raises:
        UserError: there are checkpoints, and all of them are damaged or of another
            configuration, or one cannot be read. To start anew then would overwrite
            what the run has.
    """
    paths = checkpoints(directory)
    for path in paths:
        try:
            arrays = read_arrays(path)
            progress = Progress(**unpack_json(arrays.pop("progress")))
            assign_variables(variables, arrays)
            return progress
        except FileNotFoundError:
            continue
        except OSError as error:
            # It may be whole: an older one must not take its place.
            reason = error.strerror or error
            raise UserError(f"{path}: cannot be read: {reason}") from None
        except (DamagedFile, KeyError, TypeError, ValueError):
            continue
    if paths:
        names = ", ".join(path.name for path in paths)
        raise UserError(
            f"{directory}: no checkpoint is whole and of this configuration ({names}); "
            "remove the directory to start anew"
        )
    return None


def checkpoints(directory: Path) -> list[Path]:
    """The checkpoints of a directory, the newest first."""
    found = directory.glob("step-*.npz")
    # Not a copy that somebody keeps under a longer name.
    own = [path for path in found if re.fullmatch(r"step-\d+\.npz", path.name)]
    return sorted(own, reverse=True)
