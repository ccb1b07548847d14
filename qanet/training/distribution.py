"""The compiled training step, on one device, on several, or on several machines.

Whatever the strategy, `training.batch_size` is the global batch: each replica computes
its share of every batch, and all take the step of the whole. Noise depends on the
position in the global batch, so it does not depend on the number of replicas either.

Keras' `fit` is not used: it waits for the loss of every step, leaves lengths open that
a TPU wants closed, and does not run under `MultiWorkerMirroredStrategy`.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import keras
import numpy as np

from qanet.config import Config
from qanet.datasets.batches import BatchMaker, training_batches, training_dataset
from qanet.datasets.plans import PlannedBatch
from qanet.errors import UserError
from qanet.training.cluster import is_first_worker

Arrays = Mapping[str, np.ndarray]


class JaxDistribution:
    """The devices of this process, through JAX.

    Args:
        devices: their names, as `keras.distribution.list_devices` gives them; none
            computes on JAX' default device.

    Attributes:
        replicas: copies of the model that share a batch.
        is_chief: whether this process writes the run directory.
    """

    def __init__(self, devices: Sequence[str] = ()):
        self.replicas = len(devices) or 1
        self.is_chief = True
        self._layout = None
        if devices:
            self._layout = keras.distribution.DataParallel(devices=list(devices))

    def scope(self) -> contextlib.AbstractContextManager:
        """The context in which everything is made and run."""
        return self._layout.scope() if self._layout else contextlib.nullcontext()

    def training(self, model: keras.Model) -> "Training":
        """What trains a model that is compiled."""
        import jax

        step = jax.jit(model.train_step, donate_argnums=0)

        def train(maker, plan):
            groups = training_state(model)
            state = tuple([variable.value for variable in group] for group in groups)
            try:
                for batch in training_batches(maker, plan):
                    logs, state = step(state, self._distributed(batch))
                    yield logs["loss"]
            finally:
                # The step has taken the variables' buffers over.
                for group, values in zip(groups, state, strict=True):
                    for variable, value in zip(group, values, strict=True):
                        variable.assign(value)

        return train

    def predictor(self, model: keras.Model) -> Callable[[Arrays], Arrays]:
        """A function from a batch of inputs to the model's outputs."""
        if not self._layout:
            return model.predict_on_batch

        def predict(inputs):
            inputs, count = _divisible(inputs, self.replicas)
            outputs = model.predict_on_batch(self._distributed(inputs))
            return {name: value[:count] for name, value in outputs.items()}

        return predict

    def _distributed(self, batch):
        """Arrays as they are, or each cut along the batch over the devices."""
        if not self._layout:
            return batch
        distribution = keras.distribution
        return keras.tree.map_structure(
            lambda array: distribution.distribute_tensor(
                array, self._layout.get_data_layout(array.shape)
            ),
            batch,
        )


# Trains on the batches of a plan in turn and yields the mean loss since the first of
# them, a scalar of the backend that is not waited for.
Training = Callable[[BatchMaker, Sequence[PlannedBatch]], Iterator]


def training_state(model: keras.Model) -> tuple[list[keras.Variable], ...]:
    """The groups of variables that `train_step` takes and gives back on JAX."""
    return (
        model.trainable_variables,
        model.non_trainable_variables,
        model.optimizer.variables,
        model.metrics_variables,
    )


class TensorFlowDistribution:
    """The devices of a strategy of `tf.distribute`; for methods see `JaxDistribution`.

    Args:
        strategy: `MirroredStrategy`, `MultiWorkerMirroredStrategy`, `TPUStrategy`, or
            that for one device, which `tf.distribute.get_strategy()` gives.
        static_shapes: trace the step anew for every length, because the device
            compiles nothing whose shape is open.
        is_chief: see `JaxDistribution`.
    """

    def __init__(self, strategy, static_shapes: bool = False, is_chief: bool = True):
        import tensorflow as tf

        self.replicas = strategy.num_replicas_in_sync
        self.is_chief = is_chief
        self._strategy = strategy
        self._static_shapes = static_shapes
        # XLA does not compile what is exchanged between replicas.
        self._compiles = strategy is tf.distribute.get_strategy()

    @contextlib.contextmanager
    def scope(self):
        import tensorflow as tf

        lost = (tf.errors.UnavailableError, tf.errors.AbortedError)
        try:
            with self._strategy.scope():
                yield
        except lost:
            raise UserError(
                "another worker has stopped or cannot be reached; see what it says, "
                "then start all workers again with --resume"
            ) from None

    def training(self, model):
        import tensorflow as tf

        strategy = self._strategy
        step = None

        def run(data):
            logs = strategy.run(model.train_step, args=(data,))
            return strategy.reduce("MEAN", logs["loss"], axis=None)

        def train(maker, plan):
            nonlocal step
            dataset = strategy.distribute_datasets_from_function(
                lambda context: training_dataset(maker, _shares(plan, context))
            )
            if step is None:
                spec = None if self._static_shapes else [dataset.element_spec]
                step = tf.function(
                    run, input_signature=spec, jit_compile=self._compiles
                )
            for batch in dataset:
                yield step(batch)

        return train

    def predictor(self, model):
        import tensorflow as tf

        if self._compiles:
            return model.predict_on_batch
        strategy = self._strategy
        replicas = len(strategy.extended.worker_devices)

        @tf.function(reduce_retracing=not self._static_shapes)
        def step(inputs):
            return strategy.run(lambda x: model(x, training=False), args=(inputs,))

        def distributed(array):
            shares = np.split(array, replicas)
            return strategy.experimental_distribute_values_from_function(
                lambda context: tf.constant(
                    shares[context.replica_id_in_sync_group % replicas]
                )
            )

        def predict(inputs):
            inputs, count = _divisible(inputs, replicas)
            outputs = step({name: distributed(x) for name, x in inputs.items()})
            return {
                name: np.concatenate(strategy.experimental_local_results(value))[:count]
                for name, value in outputs.items()
            }

        return predict


def _divisible(inputs: Arrays, replicas: int) -> tuple[Arrays, int]:
    """The batch with rows added until the replicas divide it, and how many it had."""
    count = len(next(iter(inputs.values())))
    return {
        name: np.pad(array, [(0, -count % replicas)] + [(0, 0)] * (array.ndim - 1))
        for name, array in inputs.items()
    }, count


Distribution = JaxDistribution | TensorFlowDistribution


def make_distribution(config: Config) -> Distribution:
    """The devices that the configuration asks for.

    To be called before anything else computes: TensorFlow connects its workers first.

    Raises:
        UserError: Keras has another backend, there are no such devices, or the batch
            cannot be shared among them.
    """
    strategy = config.distribution.strategy
    makers = {"tensorflow": _on_tensorflow, "jax": _on_jax}
    backend = keras.backend.backend()
    if backend not in makers:
        raise UserError(
            f"KERAS_BACKEND={backend}: trains on tensorflow or jax; set one of them"
        )
    distribution = makers[backend](strategy)
    size, replicas = config.training.batch_size, distribution.replicas
    if size % replicas:
        raise UserError(
            f"training.batch_size={size}: {replicas} replicas cannot share it "
            f"(distribution.strategy={strategy}); give a multiple of {replicas}"
        )
    return distribution


def _on_jax(strategy: str) -> JaxDistribution:
    if strategy == "none":
        return JaxDistribution()
    if strategy == "mirrored":
        return JaxDistribution(keras.distribution.list_devices())
    raise UserError(
        f"distribution.strategy={strategy}: is for TensorFlow; on JAX, mirrored takes "
        "all devices of the machine, TPU cores too"
    )


def _on_tensorflow(strategy: str) -> TensorFlowDistribution:
    import tensorflow as tf

    if strategy == "none":
        return TensorFlowDistribution(tf.distribute.get_strategy())
    if strategy == "mirrored":
        devices = tf.config.list_logical_devices("GPU")
        devices = devices or tf.config.list_logical_devices("CPU")
        return TensorFlowDistribution(
            tf.distribute.MirroredStrategy([device.name for device in devices])
        )
    if strategy == "multi_worker":
        is_chief = is_first_worker()
        return TensorFlowDistribution(
            tf.distribute.MultiWorkerMirroredStrategy(), is_chief=is_chief
        )
    name = os.environ.get("TPU_NAME", "local")
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(name)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, OSError, tf.errors.OpError) as error:
        # The first sentence; what follows is TensorFlow's inside.
        (reason, *_) = str(error).partition(". ")[0].splitlines() or ["unknown reason"]
        raise UserError(
            f"distribution.strategy=tpu: no TPU found as TPU_NAME={name} ({reason})"
        ) from None
    return TensorFlowDistribution(
        tf.distribute.TPUStrategy(resolver), static_shapes=True
    )


def _shares(plan: Sequence[PlannedBatch], context) -> list[PlannedBatch]:
    """For each batch in turn, the parts that this worker's replicas compute.

    Args:
        plan: whole batches.
        context: a `tf.distribute.InputContext`.
    """
    replicas = context.num_replicas_in_sync
    count = replicas // context.num_input_pipelines
    first = count * context.input_pipeline_id
    return [
        replace(batch, items=items)
        for batch in plan
        for items in np.split(batch.items, replicas)[first : first + count]
    ]
