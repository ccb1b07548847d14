"""The tests of layers, models and training once more, on JAX."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest

ROOT = Path(__file__).parents[1]
TRAINING = (
    "checkpoint",
    "distribution",
    "learner",
    "loss",
    "optimizer",
    "progress_bar",
    "trainer",
)
ORIGINAL = (
    "a_public_reader_keeps_its_head[checkpoint]",
    "original_checkpoints_are_read_alike",
    "pretraining_goes_on_with_its_heads[checkpoint]",
)
KILLED = "test_run_killed_with_signal_9_resumes_bit_for_bit"


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="runs on JAX already")
@pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="JAX not installed")
def test_layers_models_and_training_pass_on_jax():
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider"]
    # Each operation is compiled for each shape, to be run once or twice.
    environment = {
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "true",
        # To store what is compiled, or where it was called, takes longer than it saves.
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0",
    }

    result = subprocess.run(
        [
            *command,
            "tests/layers",
            "tests/models",
            "tests/pretraining/test_mlm_model.py",
            *(f"tests/training/test_{name}.py" for name in TRAINING),
            "tests/translation/test_models.py",
            # What Keras stores and what models consist of is the same on each backend.
            "-k",
            "not test_round_trip and not made_again and not parameter_count and "
            "not question_share and not dropout_between and not each_rate_reaches "
            "and not a_stored_model "
            # Is for exports, which TensorFlow makes.
            "and not computed_before "
            # How files are damaged, too.
            "and not cut_off and not flipped_bits and not fit_is_named "
            # Of the models one of words and one of pieces learn; the order of draws is
            # that of Keras.
            "and not toy_language and not follow_from_the_seed "
            "and (not learned_by_heart or bidaf or bert) "
            # Contextual vectors go into each model by the same layers.
            "and (not contextual_vectors or qanet) "
            "or keeps_the_noise",
            # Start processes, or need files, of TensorFlow.
            f"--deselect=tests/training/test_trainer.py::{KILLED}",
            *(
                f"--deselect=tests/models/test_bert_weights.py::test_{name}"
                for name in ORIGINAL
            ),
        ],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )

    assert result.returncode == 0, result.stdout
    # Why some are skipped tells that it was JAX.
    assert "is for TensorFlow" in result.stdout
