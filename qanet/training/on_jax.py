"""Training with JAX: one device, or all of this process."""

import contextlib
from collections.abc import Sequence

import jax
import keras

from qanet.datasets.batches import training_batches
from qanet.errors import UserError, is_out_of_memory
from qanet.models.prediction import prediction
from qanet.training.errors import out_of_memory
from qanet.training.learner import Learner
from qanet.training.shares import divisible


class JaxDistribution:
    """The devices of this process; see `qanet.training.distribution.Distribution`.

    Args:
        devices: their names, as `keras.distribution.list_devices` gives them; none
            computes on JAX' default device.
    """

    def __init__(self, devices: Sequence[str] = ()):
        self.replicas = len(devices) or 1
        self.is_chief = True
        self._layout = None
        if devices:
            self._layout = keras.distribution.DataParallel(devices=list(devices))

    @contextlib.contextmanager
    def scope(self):
        try:
            with self._layout.scope() if self._layout else contextlib.nullcontext():
                yield
        except jax.errors.JaxRuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise out_of_memory() from None

    def training(self, learner, size):
        step = jax.jit(step_of(learner), donate_argnums=0)

        def train(maker, plan):
            groups = state_of(learner)
            state = [[variable.value for variable in group] for group in groups]
            try:
                for batch in training_batches(maker, plan):
                    state, loss, norm = step(state, self._distributed(batch))
                    yield loss, norm
            finally:
                # The step has taken the variables' buffers over.
                for group, values in zip(groups, state, strict=True):
                    for variable, value in zip(group, values, strict=True):
                        variable.assign(value)

        return train

    def predictor(self, model):
        whole = prediction(model)
        if not self._layout:
            return whole

        def predict(inputs):
            inputs, count = divisible(inputs, self.replicas)
            outputs = whole(self._distributed(inputs))
            return keras.tree.map_structure(lambda value: value[:count], outputs)

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


def state_of(learner: Learner) -> list[list[keras.Variable]]:
    """The groups of variables that a step takes and gives back."""
    model = learner.model
    return [
        model.trainable_variables,
        model.non_trainable_variables,
        learner.optimizer.variables,
        learner.averages,
    ]


def step_of(learner: Learner):
    """A step as a function from state and batch to state, loss and gradient's norm."""
    groups = state_of(learner)
    model = learner.model

    def step(state, batch):
        trainable, others, *_ = state
        inputs, targets = batch

        def loss_of(values):
            outputs, changed = model.stateless_call(
                values, others, inputs, training=True
            )
            loss = learner.loss(targets, outputs) + learner.penalty(values)
            return loss, changed

        gradient_of = jax.value_and_grad(loss_of, has_aux=True)
        (loss, others), gradients = gradient_of(trainable)
        gradients, norm = learner.clipped(gradients)
        state = [trainable, others, *state[2:]]
        pairs = [
            pair
            for group, values in zip(groups, state, strict=True)
            for pair in zip(group, values, strict=True)
        ]
        with keras.StatelessScope(pairs) as scope:
            learner.update(gradients)
        state = [[scope.get_current_value(v) for v in group] for group in groups]
        return state, loss, norm

    return step


def distribute(strategy: str) -> JaxDistribution:
    """The devices that a `distribution.strategy` stands for; `UserError` for others."""
    if strategy == "none":
        return JaxDistribution()
    if strategy == "mirrored":
        return JaxDistribution(keras.distribution.list_devices())
    raise UserError(
        f"distribution.strategy={strategy}: is for TensorFlow; on JAX, mirrored takes "
        "all devices of the machine, TPU cores too"
    )
