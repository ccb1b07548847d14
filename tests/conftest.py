"""Fixtures of several test files."""

import json
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

# Four devices on one processor, for the tests of distribution; TensorFlow has no such
# variable, see `virtual_devices`. And programs as they come, for most are run a few
# times. Both also in processes that tests start.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_force_host_platform_device_count=4 --xla_backend_optimization_level=0",
)


def pytest_configure(config):
    """Lets all processes of one session share what is compiled, and a cache.

    The processes of pytest-xdist and those that tests start inherit the variables.
    """
    if hasattr(config, "workerinput"):
        return
    compiled = tempfile.mkdtemp(prefix="qanet-compiled-")
    config.add_cleanup(partial(shutil.rmtree, compiled, ignore_errors=True))
    os.environ["TF_XLA_FLAGS"] = f"--tf_xla_persistent_cache_directory={compiled}"
    os.environ["JAX_COMPILATION_CACHE_DIR"] = compiled
    # And what they have read.
    os.environ["XDG_CACHE_HOME"] = os.path.join(compiled, "cache")


def pytest_collection_modifyitems(items):
    """The longest test first, or one process would be alone with it at the end."""
    items.sort(key=lambda item: item.path.name != "test_jax.py")


@pytest.fixture(scope="session", autouse=True)
def virtual_devices():
    """Four devices on one processor for TensorFlow, before it first computes."""
    import keras

    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        (processor,) = tf.config.list_physical_devices("CPU")
        device = tf.config.LogicalDeviceConfiguration()
        tf.config.set_logical_device_configuration(processor, [device] * 4)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def fixed_seed():
    """Makes the initial weights and the noise of layers the same in every run."""
    import keras

    keras.utils.set_random_seed(7)


@pytest.fixture(scope="session")
def reference():
    """The formulas in plain NumPy, from `layers/reference.py`."""
    path = Path(__file__).parent / "layers" / "reference.py"
    return SimpleNamespace(**runpy.run_path(str(path)))


@pytest.fixture
def randomise(rng):
    """Sets all weights of a built layer at random, also biases and norm scales.

    Returns them as float64 arrays by their path within the layer.
    """

    def set_weights(layer, bound=0.8):
        values = {}
        for weight in layer.weights:
            value = rng.uniform(-bound, bound, weight.shape).astype("float32")
            weight.assign(value)
            path = weight.path.removeprefix(f"{layer.name}/")
            values[path] = value.astype("float64")
        return values

    return set_weights


@pytest.fixture
def mixed_bfloat16():
    """Layers made in the test compute in bfloat16 and keep float32 weights."""
    import keras

    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    yield
    keras.config.set_dtype_policy(before)


@pytest.fixture
def check_round_trip(randomise):
    """Asserts that a layer made again from its stored configuration is the same."""
    import keras
    from keras import ops

    def check(layer, *inputs, **arguments):
        expected = layer(*inputs, **arguments)
        if layer.weights:
            randomise(layer)
            expected = layer(*inputs, **arguments)
        stored = json.dumps(keras.saving.serialize_keras_object(layer))
        again = keras.saving.deserialize_keras_object(json.loads(stored))
        assert type(again) is type(layer)
        assert json.dumps(again.get_config()) == json.dumps(layer.get_config())
        again(*inputs, **arguments)
        again.set_weights(layer.get_weights())
        actual = again(*inputs, **arguments)
        pairs = zip(*map(keras.tree.flatten, (actual, expected)), strict=True)
        for outputs in pairs:
            np.testing.assert_array_equal(*map(ops.convert_to_numpy, outputs))

    return check


@pytest.fixture(scope="session")
def gradients():
    """Gradients of `function(*arrays)`, a scalar, to each of the arrays."""
    import keras

    def on_jax(function, *arrays):
        import jax

        every = tuple(range(len(arrays)))
        return [np.asarray(g) for g in jax.jit(jax.grad(function, every))(*arrays)]

    def on_tensorflow(function, *arrays):
        import tensorflow as tf

        tensors = [tf.constant(array) for array in arrays]
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            value = function(*tensors)
        result = tape.gradient(value, tensors, unconnected_gradients="zero")
        return [tf.convert_to_tensor(g).numpy() for g in result]

    return on_jax if keras.backend.backend() == "jax" else on_tensorflow


@pytest.fixture(scope="session")
def call_with():
    """Calls a layer with other values of its trained weights, changing no state."""
    import keras

    def call(layer, values, *inputs, **arguments):
        mapping = list(zip(layer.trainable_variables, values, strict=True))
        with keras.StatelessScope(mapping):
            return layer(*inputs, **arguments)

    return call


@pytest.fixture(scope="session")
def compiled():
    """A layer or model to be called at a shape that no other test has.

    On JAX each operation is compiled for each shape, all of them at once far faster
    than one by one. TensorFlow has its operations at hand.
    """
    import keras

    def compile_layer(layer):
        if keras.backend.backend() != "jax":
            return layer
        import jax

        @partial(jax.jit, static_argnames="training")
        def call(*inputs, **arguments):
            with keras.StatelessScope():
                return layer(*inputs, **arguments)

        return call

    return compile_layer


@pytest.fixture
def check_gradients(gradients, call_with, rng):
    """Asserts the gradients of a layer against differences of a NumPy function.

    `function(x, weights)` is the layer at `x` in float64, with `weights` by path. The
    gradients of sum(upstream * output) are compared along one random direction for
    `x` and for each weight.
    """
    from keras import ops

    def check(layer, function, x, weights, upstream, **arguments):
        def loss(x, *values):
            return ops.sum(call_with(layer, values, x, **arguments) * upstream)

        names = [
            variable.path.removeprefix(f"{layer.name}/")
            for variable in layer.trainable_variables
        ]
        values = [weights[name].astype("float32") for name in names]
        actual = gradients(loss, x, *values)

        def difference(name, direction):
            def shifted(step):
                if name == "x":
                    return function(x + step * direction, weights)
                moved = weights | {name: weights[name] + step * direction}
                return function(x.astype("float64"), moved)

            return np.sum(upstream * (shifted(1e-6) - shifted(-1e-6))) / 2e-6

        for name, gradient in zip(["x", *names], actual, strict=True):
            direction = rng.normal(size=gradient.shape)
            np.testing.assert_allclose(
                np.sum(gradient * direction),
                difference(name, direction),
                rtol=1e-3,
                atol=1e-4,
                err_msg=name,
            )

    return check


# Tiny runs. Compiling a training step takes longer than a hundred tiny steps, so one
# compiled trainer and one run directory serve all tests.

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


@pytest.fixture(scope="module")
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


@pytest.fixture(scope="module")
def doubting_reader(doubting_model):
    """Its reader."""
    from qanet.reader import Reader

    return Reader.of(doubting_model)


@pytest.fixture(scope="session")
def killed_at_step_3():
    """A script that runs `train.py` and kills its process in the second round."""
    return """
import os, runpy, signal, sys
from qanet.training.progress import ProgressBar
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
    from qanet.datasets.training_data import read_training_data

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


@pytest.fixture
def refused(capsys):
    """Runs a command that must end with code 2 and one line, which it returns."""

    def run(command, *arguments):
        with pytest.raises(SystemExit) as caught:
            command([str(argument) for argument in arguments])
        assert caught.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("error: ")
        assert len(line) > len("error: ")
        return line

    return run
