"""Tests of qanet.training.curves."""

import struct

import pytest
from tensorboardX.proto.event_pb2 import Event, SessionLog

from qanet.errors import UserError
from qanet.training import curves
from qanet.training.curves import Curves


def events(directory):
    """What the one file holds: records of a length, a checksum, data, a checksum."""
    (path,) = directory.iterdir()
    content, found = path.read_bytes(), []
    while content:
        (size,) = struct.unpack("Q", content[:8])
        found.append(Event.FromString(content[12 : 12 + size]))
        content = content[16 + size :]
    return found


def test_each_row_is_on_disk_at_once(tmp_path):
    written = Curves(tmp_path / "new" / "curves", 5)
    written.add({"step": 6, "loss": 1.5, "f1": 25.0})
    version, begin, *points = events(tmp_path / "new" / "curves")
    assert version.file_version == "brain.Event:2"
    # Which hides what former files have of later steps.
    assert (begin.session_log.status, begin.step) == (SessionLog.START, 5)
    shown = [(p.step, v.tag, v.simple_value) for p in points for v in p.summary.value]
    assert shown == [(6, "loss", 1.5), (6, "f1", 25.0)]
    assert all(point.wall_time > 1e9 for point in points)
    written.add({"step": 9, "loss": 1.0, "f1": 50.0})
    assert len(events(tmp_path / "new" / "curves")) == 6
    written.close()


def test_a_full_disk_is_told_in_one_line(tmp_path, monkeypatch):
    written = Curves(tmp_path, 1)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(curves.EventsWriter, "flush", fail)
    for _ in range(20):
        with pytest.raises(UserError, match=f"{tmp_path}: cannot be written: No space"):
            written.add({"step": 1, "loss": 1.0})
    # Nor does the end complain once more.
    written.close()
    monkeypatch.undo()
    written.close()


def test_a_place_that_is_a_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file: cannot be written"):
        Curves(tmp_path / "file", 1)
