"""Runs what docs/python.md shows, block by block."""

import re
from pathlib import Path

import keras
import pytest

from qanet.models.registry import MODELS

PAGE = Path(__file__).parents[1] / "docs" / "python.md"


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="shows TensorFlow's arrays"
)
def test_the_page_runs_as_it_stands(trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("qanet.cli.train", lambda arguments: None)
    Path("runs").mkdir()
    Path("runs/x").symlink_to(trained.directory)
    before = dict(MODELS)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    names = {}
    try:
        for block in blocks:
            exec(block, names)
            if "class MyStack" in block:
                loaded = names["Run"]("runs/x").load().model
                stack = loaded.get_layer("model_encoder")
                assert isinstance(stack, names["MyStack"])
    finally:
        MODELS.clear()
        MODELS.update(before)
    shown = capsys.readouterr().out
    assert len(blocks) == 9
    # A row a word, and each sums to one.
    rows = re.findall(r"^\w+ +((?:\d\.\d\d ?)+)$", shown, re.MULTILINE)
    assert [abs(sum(map(float, row.split())) - 1) < 0.05 for row in rows] == [True] * 7
    assert "block_0_attention (1, 8, 8)" in shown
    assert names["report"].metrics["total"] == 324
