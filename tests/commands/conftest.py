"""Fixtures of the commands' tests."""

from pathlib import Path

import pytest

from qanet.reader import Reader

CONTEXT = "Bo’ lives in Rome.\nZoë lives in São Paulo.\n"


@pytest.fixture
def context_file(tmp_path):
    path = tmp_path / "context.txt"
    path.write_bytes(CONTEXT.encode())
    return path


@pytest.fixture
def loaded(monkeypatch, trained, trained_reader, tmp_path_factory):
    """Loads every run, such as `run`, as the trained reader that is there already."""
    monkeypatch.setattr(Reader, "load", lambda run, **options: trained_reader)
    monkeypatch.chdir(tmp_path_factory.mktemp("directory"))
    Path("run").symlink_to(trained.directory)
