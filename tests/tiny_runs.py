"""Fixtures of tiny runs.

Compiling a training step takes longer than a hundred tiny steps, so one compiled
trainer and one run directory serve all tests.
"""

import contextlib
import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
TINY = """
    data.context_limit=32 data.question_limit=8 data.buckets=[32] data.answer_limit=4
    vocabulary.word_width=4 vocabulary.word_min_count=1
    vocabulary.character_min_count=1 vocabulary.characters_per_word=4
    model.width=8 model.heads=2 model.feed_forward=8
    model.embedding_encoder.blocks=1 model.embedding_encoder.convolutions=1
    model.embedding_encoder.kernel_size=3
    model.model_encoder.blocks=1 model.model_encoder.convolutions=0
    model.character_width=4 model.character_filters=0 model.highway_layers=0
    model.word_dropout=0.1 model.dropout=0.1 model.survival=0.8
    training.steps=6 training.batch_size=4 training.learning_rate=0.01
    training.warmup_steps=2 training.evaluate_every=2 training.evaluation_questions=0
    training.evaluation_batch_size=4 training.patience=0 training.seed=42
""".split()

# Runs a script, or `-m` and a module, where the packages named first, joined with
# commas, cannot be imported. Beside a script lies what it imports, as ever.
BLOCKING = """
import os, runpy, sys
blocked = sys.argv[1].split(",")
class Blocker:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"{name} is blocked", name=name)
sys.meta_path.insert(0, Blocker)
sys.argv = sys.argv[2:]
if sys.argv[0] == "-m":
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    sys.path.insert(0, os.path.dirname(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


@contextlib.contextmanager
def eagerly():
    """Has TensorFlow take its steps without tracing or compiling what they do.

    For tests of one or two steps, which other tests compile.
    """
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    try:
        with warnings.catch_warnings():
            # What tf.data calls is traced all the same.
            warnings.filterwarnings("ignore", "Even though", UserWarning)
            yield
    finally:
        tf.config.run_functions_eagerly(False)


@pytest.fixture(scope="session")
def door():
    """Runs `python ...` in the repository, in a process of its own, on the CPU."""

    def run(*arguments, blocked=(), backend="tensorflow", input=None):
        command = [sys.executable]
        if blocked:
            command += ["-c", BLOCKING, ",".join(blocked)]
        environment = os.environ | {
            "KERAS_BACKEND": backend,
            "JAX_PLATFORMS": "cpu",
            "CUDA_VISIBLE_DEVICES": "-1",
        }
        return subprocess.run(
            [*command, *map(str, arguments)],
            cwd=ROOT,
            env=environment,
            input=input,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=900,
        )

    return run


@pytest.fixture(scope="session")
def tiny_files(tmp_path_factory):
    """A training and a dev file with 25 and 10 questions on short passages."""
    from qanet.datasets.squad import Example, Span, write_squad

    towns = ["Ålesund", "Rome", "São Paulo", "東京", "Oslo", "Saint-Malo"]

    def paragraph(split, number):
        one, two = f"Zoë{number}", f"Bo’{number}"
        here, there = towns[number % 6], towns[(number // 6 + 1 + number) % 6]
        context = f"{one} lives in {here}, but {two} lives in {there}."
        for name, town in ((one, here), (two, there)):
            start = context.index(town, context.index(name))
            yield Example(
                id=f"{split}-{number}-{name}",
                question=f"Where does {name} live?",
                context=context,
                answers=(Span(town, start),),
                title="Homes",
            )

    directory = tmp_path_factory.mktemp("data")
    files = {}
    for split, count in (("train", 12), ("dev", 5)):
        examples = [e for number in range(count) for e in paragraph(split, number)]
        if split == "train":
            # More than data.answer_limit tokens.
            context = examples[0].context
            long = Example("long", "Who?", context, (Span(context, 0),), "Homes")
            examples.append(long)
        files[split] = directory / f"{split}.json"
        write_squad(files[split], examples)
    return SimpleNamespace(**files)


@pytest.fixture(scope="session")
def tiny_arguments(tiny_files):
    """Arguments of `train.py`, but for `--output`: 6 steps, an evaluation every 2."""
    sets = [part for override in TINY for part in ("--set", override)]
    return ["--train", str(tiny_files.train), "--dev", str(tiny_files.dev), *sets]


@pytest.fixture(scope="session")
def starting_arguments(tiny_arguments):
    """The same of a training that starts from a run, which brings its vocabulary."""
    pairs = zip(tiny_arguments[::2], tiny_arguments[1::2], strict=True)
    return [part for pair in pairs if "vocabulary." not in pair[1] for part in pair]


@pytest.fixture(scope="session")
def tiny_config(tiny_files):
    """The configuration that `tiny_arguments` come to."""
    from qanet.config import load_preset

    files = [f"data.train={tiny_files.train}", f"data.dev={tiny_files.dev}"]
    return load_preset("qanet-tiny", [*TINY, *files])


@pytest.fixture(scope="session")
def trained(door, tiny_arguments, tmp_path_factory):
    """A finished run of `train.py`: its directory and what it printed.

    Only to be read.
    """
    directory = tmp_path_factory.mktemp("runs") / "trained"
    process = door("train.py", *tiny_arguments, "--output", directory)
    assert process.returncode == 0, process.stderr
    return SimpleNamespace(
        directory=directory, output=process.stdout, errors=process.stderr
    )


@pytest.fixture(scope="session")
def trained_model(trained):
    """The model that the run holds."""
    from qanet.run import Run

    return Run(trained.directory).load()


@pytest.fixture(scope="session")
def trained_reader(trained_model):
    """Its reader."""
    from qanet.reader import Reader

    return Reader.of(trained_model)


@pytest.fixture(scope="session")
def doubting_model(trained_model):
    """A model that knows no answer, which is in question, and sees matches."""
    import keras

    from qanet.layers.text_match import TextMatch
    from qanet.run import TrainedModel, build_run_model
    from qanet.weights import assign_variables, saved_variables

    config = trained_model.config
    settings = config.model.model_copy(update={"question_match": True})
    data = config.data.model_copy(update={"no_answer": True})
    config = config.model_copy(update={"data": data, "model": settings})
    model = build_run_model(config, trained_model.vocabulary)
    weights = {
        path: keras.ops.convert_to_numpy(variable)
        for path, variable in saved_variables(trained_model.model).items()
    }
    weights["no_answer/logit"] = np.array([0.5], "float32")
    match = np.random.default_rng(7).normal(size=(TextMatch.FEATURES, settings.width))
    weights["match_projection/kernel"] = 0.1 * match.astype("float32")
    assign_variables(saved_variables(model), weights)
    return TrainedModel(model, trained_model.vocabulary, config, threshold=0.25)


@pytest.fixture(scope="session")
def doubting_reader(doubting_model):
    """Its reader."""
    from qanet.reader import Reader

    return Reader.of(doubting_model)


@pytest.fixture(scope="session")
def killed_at_step_3():
    """A script that runs `train.py` and kills its process in the second round."""
    return """
import os, runpy, signal, sys
from qanet.training.progress_bar import ProgressBar
stepped = ProgressBar.step
def killing(self, loss):
    stepped(self, loss)
    if self.finished + self.read + len(self.unread) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
ProgressBar.step = killing
sys.argv[0] = "train.py"
runpy.run_path("train.py", run_name="__main__")
"""


@pytest.fixture(scope="session")
def training_data(tiny_config, tiny_files, tmp_path_factory):
    """What `tiny_config` trains on."""
    from qanet.datasets.training_files import read_training_data

    return read_training_data(tiny_config, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def compiled_trainer(tiny_config, training_data, tmp_path_factory):
    """A trainer before its first step, and the directory with its first state."""
    from qanet.run import Run
    from qanet.training.checkpoint import Progress, save_checkpoint
    from qanet.training.distribution import make_distribution
    from qanet.training.trainer import Trainer

    directory = tmp_path_factory.mktemp("trainer")
    distribution = make_distribution(tiny_config.distribution)
    trainer = Trainer(tiny_config, training_data, Run(directory), distribution)
    learner = trainer.loop.task.learner
    save_checkpoint(directory / "start", learner.state, Progress())
    return SimpleNamespace(
        trainer=trainer,
        start=directory / "start",
        data=training_data,
        distribution=distribution,
    )


@pytest.fixture
def trainer(compiled_trainer, rewind, tiny_config, tmp_path):
    """A trainer as before its first step, with an empty run directory."""
    from qanet.run import Run

    trainer = compiled_trainer.trainer
    trainer.loop.run = Run(tmp_path / "run")
    trainer.config, trainer.loop.config = tiny_config, tiny_config.training
    rewind()
    return trainer


@pytest.fixture
def rewind(compiled_trainer):
    """Takes the trainer back to where a new process would have it."""
    from qanet.training.checkpoint import Progress, restore_checkpoint

    def restore():
        loop = compiled_trainer.trainer.loop
        assert restore_checkpoint(compiled_trainer.start, loop.task.learner.state)
        loop.progress = Progress()

    return restore
