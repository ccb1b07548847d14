"""The curves of a training for TensorBoard."""

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.summary import scalar

from qanet.errors import writing


class Curves:
    """A file of curves, on disk as far as it goes after each row.

    tensorboardX' own `SummaryWriter` writes in a thread, which on a full disk ends with
    a traceback; then whoever adds to its queue waits for ever.

    Args:
        directory: where the file goes; those of former processes stay.
        first_step: what these have of this step and later ones is hidden.

    Raises:
        UserError: the disk refuses it.
    """

    def __init__(self, directory: Path, first_step: int):
        self.directory = directory
        with writing(directory):
            directory.mkdir(parents=True, exist_ok=True)
            self.writer = EventsWriter(str(directory / "events"))
        self._write(session_log=SessionLog(status=SessionLog.START), step=first_step)

    def add(self, row: Mapping[str, float]) -> None:
        """Adds a row of the history, a point to each curve; raises `UserError` too."""
        for column, value in row.items():
            if column != "step":
                self._write(summary=scalar(column, value), step=row["step"])
        with writing(self.directory):
            self.writer.flush()

    def close(self) -> None:
        """Closes the file."""
        # Tried in vain already where a disk is full.
        with contextlib.suppress(OSError):
            self.writer.close()

    def _write(self, **event) -> None:
        with writing(self.directory):
            self.writer.write_event(Event(wall_time=time.time(), **event))
