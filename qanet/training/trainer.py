"""The training loop: rounds of steps, each closed by an evaluation and a checkpoint."""

import contextlib
import math
import time
from collections.abc import Iterable

import keras
from keras import ops
from tensorboardX import SummaryWriter
from tqdm import tqdm

from qanet.config import Config
from qanet.console import progress_bar
from qanet.datasets.batches import BatchMaker
from qanet.datasets.plans import PlannedBatch, plan_training
from qanet.datasets.training_data import TrainingData
from qanet.datasets.windows import training_windows
from qanet.errors import UserError
from qanet.evaluation.evaluator import evaluate
from qanet.files import write_csv
from qanet.models.registry import forward_flops
from qanet.reader import Reader
from qanet.run import Run, build_run_model, embedding_sizes
from qanet.training.checkpoint import Progress, restore_checkpoint, save_checkpoint
from qanet.training.distribution import Distribution
from qanet.training.learner import Learner, sum_of_losses
from qanet.training.loss import span_loss

# Seconds between two looks at the loss.
LOOK_EVERY = 0.2


class Trainer:
    """Trains one model into one run directory; made and used in a distribution's scope.

    Args:
        config: the configuration.
        data: training and dev set, and the vocabulary.
        run: where everything is stored.
        distribution: the devices.

    Raises:
        UserError: the training set has no example that can be trained on.
    """

    def __init__(
        self, config: Config, data: TrainingData, run: Run, distribution: Distribution
    ):
        self.config = config
        self.data = data
        self.run = run
        self.is_chief = distribution.is_chief
        self.replicas = distribution.replicas
        training = config.training
        keras.utils.set_random_seed(training.seed)
        self.model = build_run_model(config, data.vocabulary)
        self.learner = reading_learner(self.model, config)
        self.sizes = embedding_sizes(config, data.vocabulary)
        self.train = distribution.training(self.learner)
        self.reader = Reader(
            distribution.predictor(self.model), data.vocabulary, config
        )
        self.trainable_parameters = sum(
            math.prod(variable.shape) for variable in self.model.trainable_variables
        )
        windows = training_windows(data.train, config.data, training.seed)
        self.left_out = len(data.train) - len(windows)
        table = data.vocabulary.table(data.train.words)
        self.maker = BatchMaker(
            data.train, table, windows, training.label_noise, config.data.no_answer
        )
        self.plan = plan_training(
            windows,
            data.sources,
            config.data,
            training.batch_size,
            training.steps,
            training.seed,
        )
        self.progress = Progress()

    def resume(self) -> bool:
        """Continues from the newest whole checkpoint; false where there is none.

        Raises:
            UserError: there are some, and none of them is whole.
        """
        progress = restore_checkpoint(self.run.checkpoint_directory, self.learner.state)
        if progress:
            self.progress = progress
        return progress is not None

    def fit(self) -> None:
        """Trains to the end, or until the F1 on dev has stopped rising.

        Raises:
            UserError: the loss is not a finite number; the message names the step.
        """
        steps = self.config.training.steps
        with contextlib.ExitStack() as stack:
            bar = stack.enter_context(
                progress_bar(
                    total=steps,
                    initial=self.progress.step,
                    unit="step",
                    disable=not self.is_chief,
                )
            )
            if self.is_chief:
                # Hides what an interrupted process has written of later steps.
                writer = SummaryWriter(
                    str(self.run.tensorboard_directory),
                    purge_step=self.progress.step + 1,
                )
                stack.enter_context(writer)
            report = ProgressBar(bar, self.config.training.batch_size, self.progress)
            while self.progress.step < steps and not self._exhausted():
                row = self._round(report)
                report.show_f1(row["f1"])
                if self.is_chief:
                    write_csv(self.run.history_path, self.progress.history)
                    for name, value in row.items():
                        if name != "step":
                            writer.add_scalar(name, value, row["step"])
                    save_checkpoint(
                        self.run.checkpoint_directory,
                        self.learner.state,
                        self.progress,
                    )

    def _round(self, report: "ProgressBar") -> dict[str, float]:
        """Trains until the next evaluation, and evaluates; gives the history's row."""
        training, progress = self.config.training, self.progress
        begin = time.monotonic()
        first = progress.step
        # Rounds end at multiples of evaluate_every, also after a resumed run.
        last = min(
            (first // training.evaluate_every + 1) * training.evaluate_every,
            training.steps,
        )
        plan = self.plan[first:last]
        loss, norm = self._train(plan, report)
        seconds = time.monotonic() - begin
        metrics = self._evaluate()
        progress.step = last
        progress.seconds += time.monotonic() - begin
        row = {
            "step": last,
            "examples": last * training.batch_size,
            "seconds": round(progress.seconds, 1),
            "steps_per_second": round(len(plan) / seconds, 3),
            "examples_per_second": round(len(plan) * training.batch_size / seconds, 1),
            "model_gflops": round(self._flops(plan) / seconds / 1e9, 1),
            "learning_rate": self.learner.learning_rate,
            "gradient_norm": norm,
            "loss": loss,
            "exact_match": metrics["exact_match"],
            "f1": metrics["f1"],
        }
        progress.history.append(row)
        return row

    def _train(
        self, plan: list[PlannedBatch], report: "ProgressBar"
    ) -> tuple[float, float]:
        """Takes the steps of a plan.

        Returns:
            Their mean loss, and the norm of the last gradient.
        """
        report.begin_round(batch.context_length for batch in plan)
        # Closed at once when a step fails: then the variables have their values back.
        with contextlib.closing(self.train(self.maker, plan)) as steps:
            for told in steps:
                loss, norm = told
                report.step(loss)
            return report.end_round(), float(ops.convert_to_numpy(norm))

    def _evaluate(self) -> dict[str, float]:
        """Scores the averaged weights, and stores them where they are the best."""
        progress = self.progress
        with self.learner.averaged_weights():
            metrics = evaluate(
                self.reader,
                self.data.dev_examples,
                self.data.dev,
                self.config.training.evaluation_questions,
                progress="evaluating" if self.is_chief else None,
                choose_threshold=True,
            ).metrics
            if metrics["f1"] > progress.best_f1:
                progress.best_f1 = metrics["f1"]
                progress.evaluations_since_best = 0
                if self.is_chief:
                    self.run.save_weights(self.model)
            else:
                progress.evaluations_since_best += 1
        return metrics

    def _flops(self, plan: list[PlannedBatch]) -> int:
        """Operations of the products of these steps.

        Three times those of a forward pass: backward, each product has one for either
        factor.
        """
        return 3 * sum(
            len(batch.items)
            * forward_flops(
                self.config.model,
                self.sizes,
                batch.context_length,
                batch.question_length,
            )
            for batch in plan
        )

    def _exhausted(self) -> bool:
        patience = self.config.training.patience
        return bool(patience) and self.progress.evaluations_since_best >= patience


def reading_learner(model: keras.Model, config: Config) -> Learner:
    """What trains a reading model: its loss is -log p_start - log p_end."""
    loss = sum_of_losses(span_loss, ("start_logits", "end_logits"))
    return Learner(model, loss, config.training)


class ProgressBar:
    """Shows examples/s, loss and dev F1, and stops at a loss that is no number.

    It also says when a step is compiled, which takes as long as many steps: before the
    first one of each length.

    Reading a loss waits for the device. So it is read a few times a second only, and
    the newest step is left to compute meanwhile.

    Args:
        bar: the bar, which counts steps.
        batch_size: examples in a step.
        progress: where the training stands.
    """

    def __init__(self, bar: tqdm, batch_size: int, progress: Progress):
        self.bar = bar
        self.batch_size = batch_size
        self.progress = progress
        self.shown = {}
        self.label = ""
        self.compiled = set()
        if progress.history:
            self.show_f1(progress.history[-1]["f1"])

    def begin_round(self, lengths: Iterable[int]) -> None:
        """Forgets the steps before; these are the context lengths of those to come."""
        self.lengths = iter(lengths)
        self._say_what_comes()
        self.unread = []
        self.read = 0
        self.total = 0.0
        self.begin = self.looked = time.monotonic()

    def step(self, loss) -> None:
        """Notes a step.

        Args:
            loss: its loss, a scalar of the backend.

        Raises:
            UserError: the loss of this or an earlier step is not a finite number.
        """
        self.unread.append(loss)
        if time.monotonic() - self.looked >= LOOK_EVERY:
            self._read(len(self.unread) - 1)
        self._say_what_comes()

    def end_round(self) -> float:
        """Waits for all steps; gives the round's mean loss. Raises as `step` does."""
        self._read(len(self.unread))
        return self.total / self.read

    def _say_what_comes(self) -> None:
        length = next(self.lengths, None)
        is_new = length is not None and length not in self.compiled
        self.compiled.add(length)
        label = f"compiling for {length} tokens" if is_new else "training"
        if label != self.label:
            self.label = label
            self.bar.set_description(label)

    def _read(self, count: int) -> None:
        for scalar in self.unread[:count]:
            loss = float(ops.convert_to_numpy(scalar))
            self.read += 1
            if not math.isfinite(loss):
                step = self.progress.step + self.read
                raise UserError(
                    f"the loss is {loss} at step {step}; start a new run with a "
                    "lower training.learning_rate (--set training.learning_rate=...)"
                )
            self.total += loss
        del self.unread[:count]
        self.looked = time.monotonic()
        if count:
            rate = self.read * self.batch_size / (self.looked - self.begin)
            self.shown |= {
                "examples/s": f"{rate:.0f}",
                "loss": f"{self.total / self.read:.3f}",
            }
            self.bar.set_postfix(self.shown, refresh=False)
            self.bar.update(count)

    def show_f1(self, f1: float) -> None:
        """Shows the F1 of the newest evaluation."""
        self.shown["dev F1"] = f"{f1:.1f}"
        self.bar.set_postfix(self.shown)
