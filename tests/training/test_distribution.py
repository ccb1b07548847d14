"""Tests of qanet.training.distribution, on two virtual devices of the processor."""

import contextlib
import csv
import json
import os
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops
from made_training import batches, small_learner, small_model, take_steps

import qanet.training.trainer as trainer_module
from qanet.datasets.plans import PlannedBatch
from qanet.errors import UserError
from qanet.frozen import open_encoder
from qanet.learning_config import DistributionConfig
from qanet.run import Run, precision
from qanet.text.tokenizer import words_of
from qanet.training.distribution import check_share, make_distribution
from qanet.training.loss import span_loss
from qanet.training.progress_bar import ProgressBar
from qanet.training.trainer import Trainer

ROOT = Path(__file__).parents[2]
PUBLIC = ROOT / "tests" / "models" / "public_bert"
# What devices share does not depend on the model, and less of it compiles faster.
PLAIN = {
    "heads": 0,
    "embedding_encoder": {"blocks": 1, "convolutions": 0, "kernel_size": 3},
    "final_norm": False,
}
NOISE = {"survival": 0.6, "character_dropout": 0.1}
CLIP_NORM = 0.5
ON_JAX = keras.backend.backend() == "jax"


def over(replicas, **options):
    """A distribution over some of the virtual devices."""
    if ON_JAX:
        from qanet.training.on_jax import JaxDistribution

        return JaxDistribution(keras.distribution.list_devices()[:replicas])
    import tensorflow as tf

    from qanet.training.on_tensorflow import TensorFlowDistribution

    devices = tf.config.list_logical_devices("CPU")[:replicas]
    # The default way of reducing cannot be used with two numbers in one process.
    reduction = tf.distribute.ReductionToOneDevice()
    strategy = tf.distribute.MirroredStrategy(devices, reduction)
    return TensorFlowDistribution(strategy, **options)


def changed(config, section, **settings):
    part = getattr(config, section).model_copy(update=settings)
    return config.model_copy(update={section: part})


@pytest.fixture(scope="module")
def config(tiny_config):
    """Every kind of noise, and gradients that are clipped."""
    config = changed(tiny_config, "training", clip_norm=CLIP_NORM)
    settings = config.model.model_dump() | NOISE | PLAIN
    return config.model_copy(update={"model": type(config.model)(**settings)})


@pytest.fixture(scope="module")
def two_lengths(config):
    """The same with batches of two lengths."""
    return changed(config, "data", buckets=(13, 32))


@pytest.fixture(scope="module")
def train(training_data, tmp_path_factory):
    """Trains from the start; gives what was seen on the way and at the end."""

    def run(config, distribution, monkeypatch):
        losses, traces = [], []

        def noted(self, loss):
            losses.append(float(ops.convert_to_numpy(loss)))
            step(self, loss)

        def traced(weights, logits):
            traces.append(tuple(weights.shape))
            return span_loss(weights, logits)

        step = ProgressBar.step
        monkeypatch.setattr(ProgressBar, "step", noted)
        monkeypatch.setattr(trainer_module, "span_loss", traced)
        with distribution.scope():
            directory = tmp_path_factory.mktemp("run")
            trainer = Trainer(config, training_data, Run(directory), distribution)
            lengths = {batch.context_length for batch in trainer.loop.task.plan}
            assert lengths == set(config.data.buckets)
            trainer.loop.fit()
            batch = next(b for b in trainer.loop.task.plan if b.context_length == 32)
            inputs = trainer.loop.task.maker.inputs(batch)
            with trainer.loop.task.learner.averaged_weights():
                outputs = trainer.reader.predict(inputs)
                odd = trainer.reader.predict({k: v[:3] for k, v in inputs.items()})
        return SimpleNamespace(
            losses=losses,
            traces=traces,
            history=trainer.loop.progress.history,
            logits=np.asarray(outputs["start_logits"]),
            odd=np.asarray(odd["start_logits"]),
        )

    return run


@pytest.fixture(scope="module")
def alone(config, train):
    """The same training on one device, without a strategy."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        return train(config, make_distribution(config.distribution), monkeypatch)


# TensorFlow compiles the step once for each replica, JAX once for all of them.
def test_replicas_train_like_one_device(config, train, alone, monkeypatch):
    """Losses, averages and scores; dropout and stochastic depth are on."""
    distribution = over(2)
    assert distribution.replicas == 2
    together = train(config, distribution, monkeypatch)

    # Each of TensorFlow's replicas is traced for its share of a batch, start and end.
    shares = 2 * [(4, 32)] if ON_JAX else 4 * [(2, None)]
    assert together.traces == shares
    assert len(alone.losses) == 6
    np.testing.assert_allclose(together.losses, alone.losses, atol=1e-4)
    for one, other in zip(together.history, alone.history, strict=True):
        assert one["gradient_norm"] > 0.5
        assert one["gradient_norm"] == pytest.approx(other["gradient_norm"], rel=1e-3)
        assert one["f1"] == other["f1"]
    np.testing.assert_allclose(together.logits, alone.logits, atol=1e-3)
    # Three rows are shared among the replicas like any other number.
    np.testing.assert_allclose(together.odd, together.logits[:3], atol=1e-5)


@pytest.mark.skipif(not ON_JAX, reason="is for JAX")
def test_devices_share_what_is_read(monkeypatch):
    def whole(inputs):
        assert len(inputs["x"].addressable_shards) == 2
        assert {shard.data.shape for shard in inputs["x"].addressable_shards} == {
            (3, 3)
        }
        return {"y": np.asarray(inputs["x"])}

    distribution = over(2)
    monkeypatch.setattr("qanet.training.on_jax.prediction", lambda model: whole)
    predict = distribution.predictor(None)
    x = np.arange(15, dtype="float32").reshape(5, 3)
    with distribution.scope():
        outputs = predict({"x": x})
    np.testing.assert_array_equal(outputs["y"], x)


def test_mirrored_takes_all_devices(config):
    config = changed(config, "distribution", strategy="mirrored")
    assert make_distribution(config.distribution).replicas == 2


def test_one_model_after_another_in_a_process(config):
    """Other shapes are exchanged, also where some were exchanged before."""
    config = changed(config, "distribution", strategy="mirrored")
    for outputs in (2, 5):
        some = batches(2, outputs=outputs)
        losses = []
        for strategy in (config.distribution, DistributionConfig()):
            distribution = make_distribution(strategy)
            with distribution.scope():
                learner = small_learner(small_model(outputs=outputs))
                losses.append(take_steps(learner, some, distribution))
        np.testing.assert_allclose(*losses, rtol=1e-5)


def test_a_batch_that_the_replicas_cannot_share():
    check_share(8, SimpleNamespace(replicas=4))
    with pytest.raises(UserError, match=r"batch_size=6: 4 replicas .* multiple of 4"):
        check_share(6, SimpleNamespace(replicas=4))


def test_a_backend_that_nothing_here_trains_on(config, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    with pytest.raises(UserError, match=r"KERAS_BACKEND=torch: .*tensorflow or jax"):
        make_distribution(config.distribution)


@pytest.mark.skipif(ON_JAX, reason="is TensorFlow's")
def test_each_core_is_a_device(monkeypatch):
    import tensorflow as tf

    from qanet.training import on_tensorflow

    made = []
    monkeypatch.setattr(on_tensorflow, "own_cores", lambda: 5)
    config = tf.config
    monkeypatch.setattr(config, "get_logical_device_configuration", lambda device: None)
    monkeypatch.setattr(
        config, "set_logical_device_configuration", lambda device, own: made.append(own)
    )
    on_tensorflow.distribute("cores")
    assert [len(devices) for devices in made] == [5]


@pytest.mark.skipif(not ON_JAX, reason="is for JAX")
@pytest.mark.parametrize("strategy", ["cores", "multi_worker", "tpu"])
def test_strategies_of_tensorflow_alone(config, strategy):
    config = changed(config, "distribution", strategy=strategy)
    with pytest.raises(UserError, match=f"{strategy}: is for TensorFlow.*mirrored"):
        make_distribution(config.distribution)


@pytest.mark.skipif(ON_JAX, reason="is for TensorFlow")
def test_no_tpu(config, monkeypatch):
    monkeypatch.setenv("TPU_NAME", "nowhere")
    config = changed(config, "distribution", strategy="tpu")
    with pytest.raises(UserError, match="no TPU found as TPU_NAME=nowhere") as error:
        make_distribution(config.distribution)
    assert "\n" not in str(error.value)


@pytest.mark.skipif(ON_JAX, reason="is for TensorFlow")
def test_a_worker_that_cannot_be_started(config, monkeypatch):
    import tensorflow as tf

    def start():
        raise tf.errors.UnknownError(None, None, "Could not start gRPC server\nmore")

    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", start)
    cluster = '{"cluster": {"worker": ["a"]}, "task": {"type": "worker", "index": 0}}'
    monkeypatch.setenv("TF_CONFIG", cluster)
    config = changed(config, "distribution", strategy="multi_worker")
    with pytest.raises(UserError) as error:
        make_distribution(config.distribution)
    assert f"TF_CONFIG {cluster}: " in str(error.value)
    assert "(Could not start gRPC server)" in str(error.value)


@pytest.mark.skipif(ON_JAX, reason="is for TensorFlow")
@pytest.mark.parametrize(("size", "sizes"), [(None, [4, 2]), (4, [4, 4, 4])])
def test_stretches_do_not_change_what_is_traced(size, sizes):
    """So that a stopped training takes the very steps of an undisturbed one."""
    learner, traced = small_learner(), []
    loss_of = learner.loss

    def loss(targets, outputs):
        traced.append(outputs["y"].shape[0])
        return loss_of(targets, outputs)

    learner.loss = loss
    train = make_distribution(DistributionConfig()).training(learner, size)
    random = np.random.default_rng(0)

    class Sizes:
        def inputs(self, batch):
            return {"x": random.normal(size=(len(batch.items), 3)).astype("float32")}

        def targets(self, batch):
            return {"y": random.normal(size=(len(batch.items), 2)).astype("float32")}

    plan = [PlannedBatch(np.arange(count), 1, 1) for count in sizes]
    for stretch in (plan, plan[:1], plan[1:]):
        losses = [ops.convert_to_numpy(loss) for loss, _ in train(Sizes(), stretch)]
        assert len(losses) == len(stretch)
        assert np.isfinite(losses).all()
    assert traced == [size]


def test_half_precision_learns_like_single():
    """Products are rounded to three digits, losses are not."""
    some = batches(12)

    def loss(targets, outputs):
        return ops.mean(ops.square(ops.cast(outputs["y"], "float32") - targets["y"]))

    single = take_steps(small_learner(loss=loss), some)
    with precision("bfloat16"):
        learner = small_learner(loss=loss)
    half = take_steps(learner, some)
    np.testing.assert_allclose(half, single, rtol=0.03)
    assert all(variable.dtype == "float32" for variable in learner.model.variables)


@pytest.mark.skipif(ON_JAX, reason="is for TensorFlow")
@pytest.mark.parametrize("replicas", [1, 2])
def test_half_precision_is_predicted_around_its_products(replicas, monkeypatch, rng):
    from qanet.models import half_precision, prediction
    from qanet.training import on_tensorflow

    used = []

    def noted(function):
        used.append(function)
        return half_precision.around_products(function)

    for module in (prediction, on_tensorflow):
        monkeypatch.setattr(module, "around_products", noted)
    monkeypatch.setattr(half_precision, "multiplies_in_half", lambda: True)
    one = make_distribution(DistributionConfig())
    distribution = over(2) if replicas == 2 else one
    with precision("bfloat16"), distribution.scope():
        model = small_learner().model
    predict = distribution.predictor(model)
    for count in (3, 4):
        x = rng.normal(size=(count, 3)).astype("float32")
        found = predict({"x": x})["y"]
        expected = ops.convert_to_numpy(ops.cast(model({"x": x})["y"], "float32"))
        np.testing.assert_allclose(np.asarray(found, "float32"), expected, atol=0.02)
    assert used


def test_the_step_is_traced_once_for_all_rounds(alone):
    """Start and end have a loss each."""
    assert alone.traces == 2 * [(4, 32 if ON_JAX else None)]


def test_static_shapes_are_traced_once_a_length_and_never_again(
    two_lengths, train, monkeypatch
):
    # On JAX they are always static.
    alone = make_distribution(two_lengths.distribution)
    distribution = alone if ON_JAX else over(1, static_shapes=True)
    traces = train(two_lengths, distribution, monkeypatch).traces
    assert sorted(traces) == [(4, 13), (4, 13), (4, 32), (4, 32)]


@pytest.mark.skipif(not ON_JAX, reason="is for JAX")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_step_lowers_for_a_tpu_without_calls_to_the_host(
    two_lengths, training_data, tmp_path, precision
):
    import jax

    from qanet.training.on_jax import JaxDistribution, state_of, step_of

    config = changed(two_lengths, "training", precision=precision)
    trainer = Trainer(config, training_data, Run(tmp_path), JaxDistribution())
    maker = trainer.loop.task.maker
    state = [[v.value for v in group] for group in state_of(trainer.loop.task.learner)]
    for length in (13, 32):
        batch = next(b for b in trainer.loop.task.plan if b.context_length == length)
        data = maker.inputs(batch), maker.targets(batch)
        step = jax.export.export(
            jax.jit(step_of(trainer.loop.task.learner)), platforms=["tpu"]
        )
        module = step(state, data).mlir_module()
        assert "callback" not in module
        # Every shape is known.
        assert "tensor<?" not in module


def free_ports(count):
    """Below those that a system gives to whoever opens a connection meanwhile."""
    ports = []
    for port in random.sample(range(20_000, 32_000), 1_000):
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            ports.append(port)
        if len(ports) == count:
            break
    return ports


def run_workers(scripts, arguments):
    """Runs a worker with each of the scripts; gives their ends, one after the other."""
    ports = free_ports(len(scripts))
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    workers = []
    for index, script in enumerate(scripts):
        task = {"type": "worker", "index": index}
        environment = os.environ | {
            "CUDA_VISIBLE_DEVICES": "-1",
            "TF_CONFIG": json.dumps({"cluster": cluster, "task": task}),
        }
        workers.append(
            subprocess.Popen(
                [sys.executable, *script, *map(str, arguments)],
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
        )
    ends = []
    for worker in workers:
        output, errors = worker.communicate(timeout=600)
        ends.append(SimpleNamespace(code=worker.returncode, out=output, err=errors))
    return ends


def rows_of(directory):
    with (directory / "history.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.skipif(ON_JAX, reason="is for TensorFlow")
@pytest.mark.skipif(os.name != "posix", reason="kill -9 needs POSIX signals")
def test_two_workers_train_like_one_although_one_of_them_dies(
    alone, tiny_arguments, killed_at_step_3, tmp_path
):
    arguments = [*tiny_arguments, "--set", f"training.clip_norm={CLIP_NORM}"]
    for key, value in (NOISE | PLAIN).items():
        arguments += ["--set", f"model.{key}={json.dumps(value)}"]
    directory = tmp_path / "run"
    output = ["--output", directory]
    strategy = ["--set", "distribution.strategy=multi_worker"]
    first, second = run_workers(
        [["train.py"], ["-c", killed_at_step_3]], [*arguments, *strategy, *output]
    )
    assert second.code == -signal.SIGKILL, second.err
    assert first.code == 2, first.err
    message = "error: another worker has stopped or cannot be reached"
    assert first.err.splitlines()[-1].startswith(message)
    assert "Traceback" not in first.err
    assert [row["step"] for row in rows_of(directory)] == ["2"]

    first, second = run_workers([["train.py"]] * 2, ["--resume", *output])
    assert first.code == 0, first.err
    assert second.code == 0, second.err
    assert "resumed at step 2" in first.err
    assert "replicas: 2" in first.err
    # One of them writes and speaks.
    assert second.out == ""
    for one, other in zip(rows_of(directory), alone.history, strict=True):
        assert int(one["step"]) == other["step"]
        assert float(one["loss"]) == pytest.approx(other["loss"], abs=1e-4)
        assert float(one["f1"]) == pytest.approx(other["f1"])
    metrics = json.loads((directory / "metrics.json").read_text())
    best = max(alone.history, key=lambda row: row["f1"])
    assert metrics["f1"] == pytest.approx(best["f1"])
    assert metrics["exact_match"] == pytest.approx(best["exact_match"])


@pytest.mark.parametrize("strategy", ["none", "mirrored"])
def test_a_device_without_memory_is_told_in_a_line(strategy):
    if keras.backend.backend() == "jax":
        from jax.errors import JaxRuntimeError

        full = JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 7 bytes")
        other = JaxRuntimeError("INTERNAL: something else")
    else:
        from tensorflow import errors

        full = errors.ResourceExhaustedError(None, None, "OOM when allocating")
        other = errors.InternalError(None, None, "something else")
    devices = make_distribution(DistributionConfig(strategy=strategy))
    with (
        pytest.raises(UserError, match=r"out of memory; .*training\.batch_size"),
        devices.scope(),
    ):
        raise full
    with pytest.raises(type(other), match="something else"), devices.scope():
        raise other


def test_a_frozen_language_model_computes_alone():
    """Whatever devices the training that reads its vectors is shared among."""
    text = "bb d e a f"
    spans = np.array(words_of(text)[1])

    def encode():
        encoder = open_encoder(PUBLIC, 2)
        (found,) = encoder.encode([text], [spans])
        return np.array(found)

    expected = encode()
    with over(2).scope():
        np.testing.assert_allclose(encode(), expected, atol=1e-3)
    assert expected.any()
