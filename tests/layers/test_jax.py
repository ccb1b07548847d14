"""The tests of layers, models and loss once more, on JAX."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="runs on JAX already")
@pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="JAX not installed")
def test_layers_models_and_loss_pass_on_jax():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    # Each operation is compiled for each shape, to be run once or twice.
    environment = {
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "true",
    }

    result = subprocess.run(
        [
            *command,
            "tests/layers",
            "tests/models",
            "tests/training/test_loss.py",
            "tests/training/test_distribution.py",
        ],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )

    assert result.returncode == 0, result.stdout
    assert "runs on JAX already" in result.stdout
