"""A reader's training: its data, its loss, and how well it answers."""

import math

import keras
import numpy as np
from keras import ops

from qanet.backend import set_seed
from qanet.config import Config
from qanet.datasets.batches import BatchMaker
from qanet.datasets.first_places import at_first_places
from qanet.datasets.plans import PlannedBatch, plan_training, sources_of
from qanet.datasets.training_data import TrainingData
from qanet.datasets.windows import Windows, training_windows
from qanet.evaluation.evaluator import evaluate
from qanet.models.registry import MODELS, forward_flops, pretrained_of
from qanet.reader import NotFinite, Reader
from qanet.run import Run, build_run_model, embedding_sizes
from qanet.training.checkpoint import checkpoints
from qanet.training.distribution import Distribution, check_share
from qanet.training.errors import diverged
from qanet.training.learner import Learner
from qanet.training.loop import Loop, Task
from qanet.training.loss import distillation_loss, span_loss


class Trainer:
    """Trains one model into one run directory; made and used in a distribution's scope.

    Args:
        config: the configuration.
        data: training and dev set, and the vocabulary.
        run: where everything is stored.
        distribution: the devices.

    Raises:
        UserError: the training set has no example that can be trained on, the devices
            cannot share a batch, or the weights to start from do not fit.
    """

    def __init__(
        self, config: Config, data: TrainingData, run: Run, distribution: Distribution
    ):
        training = config.training
        check_share(training.batch_size, distribution)
        self.config = config
        self.data = data
        self.is_chief = distribution.is_chief
        self.replicas = distribution.replicas
        set_seed(training.seed)
        self.model = build_run_model(config, data.vocabulary)
        begins_with = run
        if not checkpoints(run.checkpoint_directory):
            self._load_initial_weights()
            begins_with = Run(training.start_from) if training.start_from else run
        self.sizes = embedding_sizes(config, data.vocabulary)
        self.reader = Reader(
            distribution.predictor(self.model),
            data.vocabulary,
            config,
            begins_with.load_threshold(),
        )
        self.trainable_parameters = sum(
            math.prod(variable.shape) for variable in self.model.trainable_variables
        )
        windows = training_windows(data.train, config.data, training.seed)
        self.left_out = left_out_of(data.sources, windows)
        table = data.vocabulary.table(data.train.words)
        features = data.train
        if MODELS[config.model.name].limits.one_word:
            features = at_first_places(features, table, windows)
        task = Task(
            learner=reading_learner(self.model, config, data.teacher is not None),
            maker=BatchMaker(
                features,
                table,
                windows,
                config.data.no_answer,
                data.teacher,
                data.contextual,
            ),
            plan=plan_training(
                windows,
                data.sources,
                config.data,
                training.batch_size,
                training.steps,
                training.seed,
            ),
            measure=self._measure,
            score=lambda measured: measured["f1"],
            headline=("f1", "dev F1"),
            flops=self._flops,
        )
        self.loop = Loop(task, training, run, distribution)

    def _load_initial_weights(self) -> None:
        """Gives the model the weights of another run, or of a pre-trained encoder."""
        model, start_from = self.config.model, self.config.training.start_from
        if start_from:
            Run(start_from).load_weights(self.model)
        elif pretrained_of(model):
            MODELS[model.name].load_pretrained(self.model, model)

    def _measure(self) -> dict[str, float]:
        """Scores the model on dev.

        Raises:
            UserError: it computes what is no finite number.
        """
        try:
            metrics = evaluate(
                self.reader,
                self.data.dev_examples,
                self.data.dev,
                self.config.training.evaluation_questions,
                progress="evaluating" if self.is_chief else None,
                choose_threshold=True,
            ).metrics
        except NotFinite:
            raise diverged("what the model says of dev are no finite numbers") from None
        return {name: metrics[name] for name in ("exact_match", "f1")}

    def _flops(self, batch: PlannedBatch) -> int:
        """Operations of the products in a step.

        Three times those of a forward pass: backward, each product has one for either
        factor.
        """
        one = forward_flops(
            self.config.model, self.sizes, batch.context_length, batch.question_length
        )
        return 3 * len(batch.items) * one


def left_out_of(sources: dict[str, int], windows: Windows) -> dict[str, int]:
    """How many examples of each training set no window shows."""
    shown = np.bincount(sources_of(windows, sources), minlength=len(sources))
    return {
        name: count - int(number)
        for (name, count), number in zip(sources.items(), shown, strict=True)
    }


def reading_learner(
    model: keras.Model, config: Config, taught: bool = False
) -> Learner:
    """What trains a reading model: its loss is -log p_start - log p_end.

    Args:
        model: the model.
        config: the configuration.
        taught: whether it learns from a teacher too, see `distillation_loss`.
    """
    names, training = ("start_logits", "end_logits"), config.training

    def loss_of(name, targets, outputs):
        if not taught:
            return span_loss(targets[name], outputs[name])
        return distillation_loss(
            targets[name],
            targets[f"teacher_{name}"],
            outputs[name],
            training.teacher_share,
            training.temperature,
        )

    def loss(targets, outputs):
        return sum(ops.mean(loss_of(name, targets, outputs)) for name in names)

    return Learner(model, loss, training)
