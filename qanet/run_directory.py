"""What every training stores, of readers, translators and pre-trained encoders.

    config.json      the whole configuration
    weights.npz      averaged weights of the best evaluation
    checkpoints/     resumable states of the training
    history.csv      one row an evaluation
    metrics.json     what the best weights were measured to be
    data.json        what tells the data from others
    tensorboard/     the same curves for TensorBoard

Every file but those of tensorboard/, which grow, is written under a temporary name and
then renamed, so none is ever seen half-written.
"""

import contextlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qanet.errors import UserError, reading
from qanet.files import (
    DamagedFile,
    digest_of,
    locked,
    parse_json,
    read_arrays,
    remove_parts,
    write_text,
)
from qanet.settings import Section, load_settings
from qanet.weights import assign_variables, save_variables, saved_variables

if TYPE_CHECKING:
    import keras


class RunDirectory:
    """What every training stores: configuration, weights, states, curves.

    Args:
        directory: its path; it need not exist yet.
    """

    # The class of its configuration, what to say of a directory without one, and the
    # numbers that a finished training has in its metrics.
    settings: type[Section]
    unknown: str
    measured: tuple[str, ...]

    def __init__(self, directory: str | os.PathLike):
        self.directory = Path(directory)
        self.config_path = self.directory / "config.json"
        self.weights_path = self.directory / "weights.npz"
        self.checkpoint_directory = self.directory / "checkpoints"
        self.history_path = self.directory / "history.csv"
        self.metrics_path = self.directory / "metrics.json"
        self.data_path = self.directory / "data.json"
        self.tensorboard_directory = self.directory / "tensorboard"

    def save_config(self, config: Section) -> None:
        """Stores the whole configuration."""
        write_text(self.config_path, config.model_dump_json(indent=2) + "\n")

    def load_config(self) -> Any:
        """Reads the configuration.

        Raises:
            UserError: this is no such directory, or its configuration is damaged.
        """
        if not self.config_path.is_file():
            raise UserError(f"{self.directory}: {self.unknown}")
        return load_settings(self.config_path, self.settings)

    def check_free(self) -> None:
        """Raises `UserError` where a training has begun, or something else lies.

        Checkpoints without a configuration count: the new training would keep those of
        the highest steps, which may be the old ones. So do scores and weights, which
        would be taken for the new training's.
        """
        if self.config_path.exists():
            raise UserError(
                f"{self.directory}: already holds a run; continue it with --resume or "
                "give another --output"
            )
        if any(self.checkpoint_directory.glob("*")):
            raise UserError(
                f"{self.checkpoint_directory}: holds checkpoints of a run without a "
                "configuration; remove the directory or give another --output"
            )
        for name in (self.metrics_path.name, self.weights_path.name, "reader.json"):
            if (self.directory / name).exists():
                raise UserError(
                    f"{self.directory}: holds {name} of an evaluation or of another "
                    "reader; give another --output"
                )

    @contextlib.contextmanager
    def held(self, writes: bool = True) -> Iterator[None]:
        """Within this context no other training reads or writes the directory.

        It is made where it is missing, and removed again where nothing came into it.

        Args:
            writes: false for the workers that leave writing to the first one; they
                hold nothing.

        Raises:
            UserError: another process holds it.
        """
        if not writes:
            yield
            return
        places = (self.directory, *self.directory.parents)
        missing = [place for place in places if not place.exists()]
        self.directory.mkdir(parents=True, exist_ok=True)
        with locked(self.directory):
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    for place in missing:
                        place.rmdir()

    def remove_parts(self) -> None:
        """Removes what trainings that were killed while they wrote have left."""
        # Not below evaluation/: another process may be writing there.
        below = (*self.directory.glob("*"), *self.directory.glob("vocabulary/*"))
        for directory in (self.directory, *filter(Path.is_dir, below)):
            remove_parts(directory)

    def check_weights(self) -> None:
        """Raises `UserError` where there are no weights."""
        if not self.weights_path.is_file():
            raise UserError(
                f"{self.weights_path}: missing; the training has not reached its first "
                "evaluation, or the file was removed"
            )

    def load_weights(self, model: "keras.Model") -> None:
        """Loads the best weights into a model.

        Raises:
            UserError: the weights are missing, damaged or of another configuration.
        """
        self.check_weights()
        with reading(self.weights_path):
            try:
                assign_variables(self.weights_of(model), read_arrays(self.weights_path))
            except (DamagedFile, ValueError) as error:
                raise UserError(
                    f"{self.weights_path}: damaged or of another configuration "
                    f"({error})"
                ) from None

    def save_weights(self, model: "keras.Model") -> None:
        """Stores the model's present weights."""
        save_variables(self.weights_path, self.weights_of(model))

    def weights_of(self, model: "keras.Model") -> "dict[str, keras.Variable]":
        """A model's weights by the names that they are stored under.

        All but frozen word vectors: the vocabulary holds those.
        """
        return saved_variables(model)

    def save_metrics(self, metrics: dict[str, Any]) -> None:
        """Stores the metrics of the last evaluation."""
        write_text(self.metrics_path, json.dumps(metrics, indent=2) + "\n")

    def load_metrics(self) -> dict[str, Any] | None:
        """Reads these metrics; `None` where the training has not come to its end.

        Raises:
            UserError: the file is damaged.
        """
        if not self.metrics_path.exists():
            return None
        try:
            metrics = parse_json(self.metrics_path.read_bytes())
            for name in self.measured:
                if not math.isfinite(metrics[name]):
                    raise ValueError(f"{name} is no number")
            return metrics
        except (OSError, OverflowError, ValueError, KeyError, TypeError):
            raise UserError(
                f"{self.metrics_path}: damaged; remove it, then --resume evaluates "
                "the run again"
            ) from None

    def begin(
        self,
        config: Section,
        save: Callable[[], None],
        resume: bool,
        digests: dict[str, str],
        counts: dict[str, dict[str, int]] | None = None,
    ) -> None:
        """Stores what a training stands on; the directory must be held meanwhile.

        Args:
            config: the whole configuration.
            save: stores what a new training makes of the data, such as the vocabulary.
            resume: this training has begun before: only the data are noted anew.
            digests: what tells the data from others, by its name in `data.json`.
            counts: what was read, for each data set.

        Raises:
            UserError: another training has taken the directory since this one began,
                or the disk refuses a file.
        """
        if not resume:
            self.check_free()
            save()
            # After it: who finds a configuration finds the rest.
            self.save_config(config)
        text = json.dumps(digests | (counts or {}), indent=2)
        write_text(self.data_path, text + "\n")

    def digest_of_texts(
        self, files: Iterable[str], resume: bool, replicas: int = 1
    ) -> dict[str, str]:
        """Tells texts, and the batches that are made of them, from others.

        Args:
            files: the texts.
            resume: this training has begun before.
            replicas: how many devices share a batch, where batches depend on that.

        Raises:
            UserError: a file cannot be read; with `resume` also as `check_data`.
        """
        shared = f"{replicas} replicas" if replicas > 1 else ""
        digests = {"digest": digest_of(map(Path, files), shared)}
        if resume:
            self.check_data(digests)
        return digests

    def check_data(self, digests: dict[str, str]) -> None:
        """Refuses to go on with other data than those that the run began with.

        A run that tells nothing of its data, as former versions made them, goes on.

        Raises:
            UserError: the data are others, or the file is damaged.
        """
        try:
            stored = parse_json(self.data_path.read_bytes())
            other = [
                name
                for name in digests
                if stored.get(name, digests[name]) != digests[name]
            ]
        except FileNotFoundError:
            return
        except (OSError, ValueError, AttributeError):
            raise UserError(
                f"{self.data_path}: damaged; remove it to go on with the data as they "
                "are now"
            ) from None
        if "digest" in other:
            raise UserError(
                f"{self.directory}: began with other training data, another teacher or "
                f"another number of devices than {self.config_path.name} and this "
                "machine have now; put the former ones back, or begin a new run"
            )
        if other:
            raise UserError(
                f"{self.directory}: began with another dev set, whose scores cannot be "
                "compared with those of this one; put it back, or begin a new run"
            )
