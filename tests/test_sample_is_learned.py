"""The promise of the README: `python train.py` learns the sample that ships.

Takes about two minutes. That no entity of the dev set occurs in the training set is
another test's matter.
"""

import json

import keras
import pytest

from qanet.datasets.features import build_features
from qanet.datasets.sources import load_examples
from qanet.evaluation.evaluator import evaluate
from qanet.reader import Reader
from qanet.run import Run, build_run_model


@pytest.fixture(scope="module")
def learned(door, tmp_path_factory):
    """The run of the README's first command, but for the place of its output."""
    directory = tmp_path_factory.mktemp("runs") / "qanet-tiny"
    process = door("train.py", "--output", directory)
    assert process.returncode == 0, process.stderr
    return Run(directory)


def test_training_on_the_sample_reaches_85_f1_on_dev(learned):
    metrics = json.loads(learned.metrics_path.read_text(encoding="utf-8"))
    examples = load_examples(learned.load_config().data.dev, "dev").examples
    assert metrics["total"] == len(examples)
    assert metrics["f1"] >= 85


def test_untrained_model_scores_below_15_f1_on_dev(learned):
    config, vocabulary = learned.load_config(), learned.load_vocabulary()
    keras.utils.set_random_seed(1)
    reader = Reader(build_run_model(config, vocabulary), vocabulary, config)
    examples = load_examples(config.data.dev, "dev").examples
    metrics = evaluate(reader, examples, build_features(examples)).metrics
    assert metrics["total"] == len(examples)
    assert metrics["f1"] < 15
