"""Fixtures of the commands' tests."""

import pytest

from qanet.reader import Reader

CONTEXT = "Bo’ lives in Rome.\nZoë lives in São Paulo.\n"


@pytest.fixture
def context_file(tmp_path):
    path = tmp_path / "context.txt"
    path.write_bytes(CONTEXT.encode())
    return path


@pytest.fixture
def loaded(monkeypatch, trained_reader):
    """Loads every run as the trained reader that is there already."""
    monkeypatch.setattr(Reader, "load", lambda run, **options: trained_reader)
