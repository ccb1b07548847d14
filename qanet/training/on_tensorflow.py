"""Training with TensorFlow: one device, several, several machines, or TPU cores."""

import contextlib
import os
from collections.abc import Sequence
from dataclasses import replace

import keras
import numpy as np
import tensorflow as tf

from qanet.datasets.batches import training_dataset
from qanet.datasets.plans import PlannedBatch
from qanet.errors import UserError
from qanet.training.cluster import is_first_worker
from qanet.training.distribution import divisible
from qanet.training.learner import Learner


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
        # XLA does not compile what is exchanged between replicas.
        self._compiles = strategy is tf.distribute.get_strategy()

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

    def training(self, learner):
        strategy = self._strategy
        step_of_replica = replica_step(learner)
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
                lambda context: training_dataset(maker, _shares(plan, context))
            )
            if step is None:
                spec = None if self._static_shapes else [dataset.element_spec]
                step = tf.function(
                    run,
                    input_signature=spec,
                    jit_compile=self._compiles,
                    autograph=False,
                )
            for batch in dataset:
                yield step(batch)

        return train

    def predictor(self, model):
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
            inputs, count = divisible(inputs, replicas)
            outputs = step({name: distributed(x) for name, x in inputs.items()})
            return keras.tree.map_structure(
                lambda value: np.concatenate(
                    strategy.experimental_local_results(value)
                )[:count],
                outputs,
            )

        return predict


def replica_step(learner: Learner):
    """A step of one replica on its share of a batch; gives loss and gradient's norm."""

    def step(batch):
        inputs, targets = batch
        variables = [variable.value for variable in learner.model.trainable_variables]
        with tf.GradientTape() as tape:
            outputs = learner.model(inputs, training=True)
            loss = learner.loss(targets, outputs) + learner.penalty(variables)
        gradients = tape.gradient(loss, variables)
        # Those of looked up rows come as slices.
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
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
        UserError: there is no TPU.
    """
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
