"""The promise of the README: `python train.py` learns the sample that ships.

Takes about two minutes, unless the README's first command has just been run here: a run
of this very code is not trained again. That no entity of the dev set occurs in the
training set is another test's matter.
"""

import json
import re
from pathlib import Path

import keras
import pytest

import qanet
from qanet.config import load_preset
from qanet.datasets.features import build_features
from qanet.datasets.sources import load_examples
from qanet.evaluation.evaluator import evaluate
from qanet.reader import Reader
from qanet.run import Run, TrainedModel, build_run_model

ROOT = Path(__file__).parents[1]


def run_of_this_code():
    """The run of the README's first command, if it is finished and newer than all that
    it was made of; else `None`."""
    run = Run(ROOT / "runs" / "qanet-tiny")
    sources = [ROOT / "train.py", *(ROOT / "qanet").rglob("*")]
    newest = max(
        path.stat().st_mtime
        for path in sources
        if path.is_file() and path.suffix != ".pyc"
    )
    files = (run.config_path, run.weights_path, run.metrics_path)
    if not all(p.is_file() and p.stat().st_mtime > newest for p in files):
        return None
    wanted = load_preset("qanet-tiny", ["data.train=sample", "data.dev=sample"])
    return run if run.load_config() == wanted else None


@pytest.fixture(scope="module")
def learned(door, tmp_path_factory):
    """The run of the README's first command, wherever its output is."""
    if run := run_of_this_code():
        return run
    directory = tmp_path_factory.mktemp("runs") / "qanet-tiny"
    with pytest.MonkeyPatch.context() as monkeypatch:
        # It pays to compile well here.
        monkeypatch.delenv("XLA_FLAGS")
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
    model = build_run_model(config, vocabulary)
    reader = Reader.of(TrainedModel(model, vocabulary, config))
    examples = load_examples(config.data.dev, "dev").examples
    metrics = evaluate(reader, examples, build_features(examples)).metrics
    assert metrics["total"] == len(examples)
    assert metrics["f1"] < 15


def test_the_page_s_examples_fit_the_reader(learned):
    page = Path(qanet.__file__).parent / "serving" / "page" / "index.html"
    page = page.read_text(encoding="utf-8")
    examples = re.findall(r'data-passage="(.*?)"\s+data-question="(.*?)"', page)
    reader = Reader.load(learned.directory)
    answers = [reader.answer(question, passage) for passage, question in examples]
    texts = [answer.text for answer in answers]
    assert texts == ["Edith Marlow", "1984", "145 kilometres"]
    # The page does not call them doubtful.
    assert min(answer.score for answer in answers) > 0.5
