"""Fixtures of several test files."""

import gc
import json
import os
import runpy
import shutil
import signal
import tempfile
from contextlib import contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings
from tiny_runs import (  # noqa: F401
    compiled_trainer,
    door,
    doubting_model,
    doubting_reader,
    eagerly,
    killed_at_step_3,
    rewind,
    starting_arguments,
    tiny_arguments,
    tiny_config,
    tiny_files,
    trained,
    trained_model,
    trained_reader,
    trainer,
    training_data,
)

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"


def as_tested(package):
    """Whether a package, if it is there at all, has the version in constraints.txt."""
    try:
        return f"{package}=={version(package)}" in CONSTRAINTS.read_text().splitlines()
    except PackageNotFoundError:
        return True


# Two devices on one processor, for the tests of distribution; TensorFlow has no such
# variable, see `virtual_devices`. And compiled with little effort, for most programs
# are run a few times. All also in processes that tests start.
XLA_FLAGS = [
    "--xla_force_host_platform_device_count=2",
    "--xla_backend_optimization_level=0",
]
# XLA ends a process that gives it a flag which its version does not know.
if as_tested("tensorflow") and as_tested("jaxlib"):
    XLA_FLAGS += [
        "--xla_cpu_use_fusion_emitters=false",
        "--xla_cpu_parallel_codegen_split_count=1",
    ]
os.environ.setdefault("XLA_FLAGS", " ".join(XLA_FLAGS))
# Some tests import ONNX Runtime before the package does.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
# tf2onnx passes over a step that fails, and copies the graph before each for that.
os.environ.setdefault("TF2ONNX_CATCH_ERRORS", "false")

# No test fails because something else is at work beside it.
settings.register_profile("qanet", deadline=None, print_blob=True)
settings.load_profile("qanet")


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
    # JAX stores by itself only what took a second; here are many small programs.
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
    # And what they have read.
    os.environ["XDG_CACHE_HOME"] = os.path.join(compiled, "cache")


@pytest.fixture(scope="session", autouse=True)
def memory_as_it_is():
    """Leaves memory alone in the process of the tests, which train many models."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qanet.memory._set", lambda option, value: None)
        yield


LONGEST = (
    "test_jax",
    "test_sample_is_learned",
    "test_distribution",
    "test_contract",
    "test_translator_trainer",
    "test_trainer",
    "test_recurrent_readers",
    "test_saved_model",
    "test_portable",
    "test_mlm_pretrainer",
    "test_bilm_pretrainer",
    "test_bert",
)


def pytest_collection_modifyitems(items):
    """The longest files first, or one process would be alone with one at the end."""

    def place(item):
        name = item.path.stem
        return LONGEST.index(name) if name in LONGEST else len(LONGEST)

    items.sort(key=place)


def pytest_collection_finish():
    """What is imported stays: looking for garbage in it, often, costs JAX a tenth."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@pytest.fixture(scope="session", autouse=True)
def virtual_devices():
    """Two devices on one processor for TensorFlow, before it first computes."""
    import keras

    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        (processor,) = tf.config.list_physical_devices("CPU")
        device = tf.config.LogicalDeviceConfiguration()
        tf.config.set_logical_device_configuration(processor, [device] * 2)


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
def uncompiled():
    """A test's steps are neither traced nor compiled, see `eagerly`."""
    with eagerly():
        yield


@pytest.fixture
def ctrl_c(monkeypatch):
    """A context in which Ctrl-C is pressed while a training takes a step.

    Args: which step of the training that begins in it, how often it is pressed.
    """
    from qanet.training.progress_bar import ProgressBar

    @contextmanager
    def context(step, times=1):
        numbers, stepped = count(1), ProgressBar.step

        def interrupted(bar, loss):
            stepped(bar, loss)
            for _ in range(times if next(numbers) == step else 0):
                signal.raise_signal(signal.SIGINT)

        # Whoever starts the tests in the background has it ignored.
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with monkeypatch.context() as patch:
                patch.setattr(ProgressBar, "step", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    yield
        finally:
            signal.signal(signal.SIGINT, handler)

    return context


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


@pytest.fixture
def session_threads(monkeypatch):
    """The threads that each session of ONNX Runtime is opened with from here on."""
    import onnxruntime

    threads, session = [], onnxruntime.InferenceSession

    def noted(name, settings, **options):
        threads.append(settings.intra_op_num_threads)
        return session(name, settings, **options)

    monkeypatch.setattr(onnxruntime, "InferenceSession", noted)
    return threads


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
