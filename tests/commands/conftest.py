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


@pytest.fixture
def two_readers(loaded, trained_reader, monkeypatch):
    """Loads `run` and `other` as the readers that it gives, which do not agree."""

    def reverse(inputs):
        outputs = trained_reader.predict(inputs)
        return {name: -3.0 * logits for name, logits in outputs.items()}

    other = Reader(reverse, trained_reader.vocabulary, trained_reader.config)
    readers = {"run": trained_reader, "other": other}
    monkeypatch.setattr(Reader, "load", lambda run: readers[run.name])
    Path("other").symlink_to(Path("run").resolve())
    return [*readers.values()]
