"""Training with TensorFlow: one device, several, several machines, or TPU cores."""

import contextlib
import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import keras
import numpy as np
import tensorflow as tf

from qanet.cores import own_cores
from qanet.datasets.batches import training_dataset
from qanet.datasets.plans import PlannedBatch
from qanet.errors import UserError, first_line
from qanet.models.half_precision import around_products, is_half_on_processor
from qanet.models.prediction import prediction
from qanet.training.cluster import EXAMPLE, is_first_worker
from qanet.training.errors import out_of_memory
from qanet.training.learner import Learner
from qanet.training.shares import divisible


class TensorFlowDistribution:
    """The devices of a `tf.distribute` strategy; see
    `qanet.training.distribution.Distribution`.

    Args:
        strategy: `MirroredStrategy`, `MultiWorkerMirroredStrategy`, `TPUStrategy`, or
            that for one device, which `tf.distribute.get_strategy()` gives.
        static_shapes: trace the step anew for every length, because the device
            compiles nothing whose shape is open.
        is_chief: whether this process writes the run directory.
    """

    def __init__(self, strategy, static_shapes: bool = False, is_chief: bool = True):
        self.replicas = strategy.num_replicas_in_sync
        self.is_chief = is_chief
        self._strategy = strategy
        self._static_shapes = static_shapes
        self._is_alone = strategy is tf.distribute.get_strategy()

    @contextlib.contextmanager
    def scope(self):
        lost = (tf.errors.UnavailableError, tf.errors.AbortedError)
        try:
            with self._strategy.scope():
                yield
        except lost:
            raise UserError(
                "another worker has stopped or cannot be reached; see what it says, "
                "then start all workers again with --resume"
            ) from None
        except tf.errors.ResourceExhaustedError:
            raise out_of_memory() from None

    def training(self, learner, size):
        # Alone, the whole step is one program of XLA's. With replicas only loss and
        # gradient are: XLA compiles nothing that is exchanged. In half precision on a
        # processor neither is; XLA compiles all but the products (`around_products`).
        strategy = self._strategy
        is_half = is_half_on_processor(learner.model)
        step_of_replica = replica_step(learner, self._compiler(learner.model))
        share = size and size // self.replicas
        step = None

        def run(batch):
            loss, norm = strategy.run(step_of_replica, args=(batch,))
            mean = tf.distribute.ReduceOp.MEAN
            return (
                strategy.reduce(mean, loss, axis=None),
                strategy.reduce(mean, norm, axis=None),
            )

        def train(maker, plan):
            nonlocal step
            dataset = strategy.distribute_datasets_from_function(
                lambda context: training_dataset(maker, _shares(plan, context), share)
            )
            if step is None:
                spec = None if self._static_shapes else [dataset.element_spec]
                step = tf.function(
                    run,
                    input_signature=spec,
                    jit_compile=self._is_alone and not is_half,
                    autograph=False,
                )
            for batch in dataset:
                yield step(batch)

        return train

    def predictor(self, model):
        if self._is_alone:
            return prediction(model)
        strategy = self._strategy
        replicas = len(strategy.extended.worker_devices)

        @self._compiler(model)
        def outputs_of(values, others, inputs):
            return model.stateless_call(values, others, inputs, training=False)[0]

        def read(inputs):
            values = values_of(model.trainable_variables)
            others = values_of(model.non_trainable_variables)
            return outputs_of(values, others, inputs)

        @tf.function(reduce_retracing=not self._static_shapes, autograph=False)
        def step(inputs):
            return strategy.run(read, args=(inputs,))

        def distributed(array):
            shares = np.split(array, replicas)
            return strategy.experimental_distribute_values_from_function(
                lambda context: tf.constant(
                    shares[context.replica_id_in_sync_group % replicas]
                )
            )

        def predict(inputs):
            inputs, count = divisible(inputs, replicas)
            outputs = step({name: distributed(x) for name, x in inputs.items()})
            return keras.tree.map_structure(
                lambda value: np.concatenate(
                    strategy.experimental_local_results(value)
                )[:count],
                outputs,
            )

        return predict

    def _compiler(self, model) -> Callable:
        """What compiles a function of tensors that a replica computes."""
        return around_products if is_half_on_processor(model) else self._compiled

    def _compiled(self, function):
        """The function compiled by XLA; a TPU compiles it anyway.

        It must take all variables' values as arguments: there is one function for each
        replica, and it can assign nothing.
        """
        if self._static_shapes:
            return function
        return tf.function(function, jit_compile=True, autograph=False)


def values_of(variables: Sequence[keras.Variable]) -> list[tf.Tensor]:
    """What this replica has of each variable."""
    return [tf.convert_to_tensor(variable.value) for variable in variables]


def replica_step(learner: Learner, compiled: Callable):
    """A step of one replica on its share of a batch; gives loss and gradient's norm.

    Args:
        learner: the learner.
        compiled: compiles a function of tensors: that of loss and gradient. What the
            replicas exchange cannot be compiled with them.
    """
    model = learner.model

    @compiled
    def gradient_of(values, others, batch):
        inputs, targets = batch
        with tf.GradientTape() as tape:
            tape.watch(values)
            outputs, after = model.stateless_call(values, others, inputs, training=True)
            loss = learner.loss(targets, outputs) + learner.penalty(values)
        gradients = tape.gradient(loss, values)
        # Those of looked up rows come as slices.
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        # Counters of noise change, the table of word vectors does not.
        changed = {
            i: new
            for i, (old, new) in enumerate(zip(others, after, strict=True))
            if new is not old
        }
        return loss, gradients, changed

    def step(batch):
        others = model.non_trainable_variables
        loss, gradients, changed = gradient_of(
            values_of(model.trainable_variables), values_of(others), batch
        )
        for i, value in changed.items():
            others[i].assign(value)
        replicas = tf.distribute.get_replica_context()
        # The gradient of the whole batch, which is what has to be clipped.
        gradients = replicas.all_reduce(tf.distribute.ReduceOp.MEAN, gradients)
        gradients, norm = learner.clipped(gradients)
        # Keras adds up what the replicas bring, which is all the same now.
        count = replicas.num_replicas_in_sync
        learner.update([gradient / count for gradient in gradients])
        return loss, norm

    return step


def distribute(strategy: str) -> TensorFlowDistribution:
    """The devices that a `distribution.strategy` stands for.

    Raises:
        UserError: there is no TPU, or `TF_CONFIG` is missing or names no worker that
            can be started.
    """
    if strategy == "none":
        return TensorFlowDistribution(tf.distribute.get_strategy())
    if strategy == "mirrored":
        devices = tf.config.list_logical_devices("GPU")
        devices = devices or tf.config.list_logical_devices("CPU")
        return TensorFlowDistribution(_mirrored(*(device.name for device in devices)))
    if strategy == "cores":
        return TensorFlowDistribution(_mirrored(*_split_processor(own_cores())))
    if strategy == "multi_worker":
        is_chief = is_first_worker()
        return TensorFlowDistribution(_workers(), is_chief=is_chief)
    return TensorFlowDistribution(_tpu(), static_shapes=True)


def _workers() -> tf.distribute.MultiWorkerMirroredStrategy:
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        raise UserError(
            f"distribution.strategy=multi_worker: TF_CONFIG "
            f"{os.environ.get('TF_CONFIG')}: this worker cannot be started "
            f"({first_line(error)}); set the addresses of all workers with free "
            f"ports, as in {EXAMPLE}"
        ) from None


def _tpu() -> tf.distribute.TPUStrategy:
    name = os.environ.get("TPU_NAME", "local")
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(name)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, OSError, tf.errors.OpError) as error:
        # The first sentence; what follows is TensorFlow's inside.
        reason = first_line(error).partition(". ")[0]
        raise UserError(
            f"distribution.strategy=tpu: no TPU found as TPU_NAME={name} ({reason})"
        ) from None
    return tf.distribute.TPUStrategy(resolver)


@functools.cache
def _mirrored(*devices: str) -> tf.distribute.MirroredStrategy:
    """The strategy of these devices, one for all trainings of a process.

    Each strategy counts its exchanges from the same number, and TensorFlow refuses
    another shape under a number that it has seen.
    """
    return tf.distribute.MirroredStrategy(devices)


def _split_processor(count: int) -> list[str]:
    """Makes devices of the processor, before TensorFlow first computes."""
    (processor,) = tf.config.list_physical_devices("CPU")
    if tf.config.get_logical_device_configuration(processor) is None:
        device = tf.config.LogicalDeviceConfiguration()
        tf.config.set_logical_device_configuration(processor, [device] * count)
    return [device.name for device in tf.config.list_logical_devices("CPU")]


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
