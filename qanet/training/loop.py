"""The training loop: rounds of steps, each closed by a measurement and a checkpoint.

A long round has further checkpoints, from which it goes on as if it had not stopped.

`Loop.fit` takes rounds (`_round`, up to a measurement), a round stretches (`_train`, up
to a checkpoint), and a stretch the steps of the backend (`Distribution.training`): loss
and penalty, gradient, its mean over the replicas, clipping, update, averages.
"""

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keras import ops

from qanet.console import progress_bar
from qanet.datasets.batches import Maker
from qanet.datasets.plans import PlannedBatch
from qanet.files import write_csv
from qanet.learning_config import LearningConfig
from qanet.run_directory import RunDirectory
from qanet.training.checkpoint import Progress, restore_checkpoint, save_checkpoint
from qanet.training.curves import Curves
from qanet.training.distribution import Distribution
from qanet.training.errors import diverged
from qanet.training.learner import Learner
from qanet.training.progress_bar import ProgressBar


@dataclass(frozen=True)
class Task:
    """What differs between trainings: batches, loss and measurement.

    Attributes:
        learner: the model and its loss.
        maker: makes batches of a plan.
        plan: the batch of each step.
        measure: measures the model as it is.
        score: what of a measurement is to become higher; the best weights are kept.
        headline: which figure of a measurement a person sees, and its name.
        flops: operations of the products in a training step on a batch, where counted.
    """

    learner: Learner
    maker: Maker
    plan: Sequence[PlannedBatch]
    measure: Callable[[], dict[str, float]]
    score: Callable[[dict[str, float]], float]
    headline: tuple[str, str]
    flops: Callable[[PlannedBatch], int] | None = None


class Loop:
    """Trains a task into a run directory.

    It is made and used in a distribution's scope, while the directory is held.

    Args:
        task: what is trained.
        config: how long, and how often it is measured.
        run: where everything is stored.
        distribution: the devices.
    """

    def __init__(
        self,
        task: Task,
        config: LearningConfig,
        run: RunDirectory,
        distribution: Distribution,
    ):
        self.task = task
        self.config = config
        self.run = run
        self.is_chief = distribution.is_chief
        self.train = distribution.training(task.learner)
        self.progress = Progress()

    def resume(self) -> bool:
        """Continues from the newest whole checkpoint; false where there is none.

        Raises:
            UserError: there are some, and none of them is whole.
        """
        progress = restore_checkpoint(
            self.run.checkpoint_directory, self.task.learner.state
        )
        if progress:
            self.progress = progress
        return progress is not None

    def fit(self, begin: Callable[[], None] = lambda: None) -> None:
        """Trains to the end, or until the score has stopped rising.

        Args:
            begin: stores what the training stands on.

        Raises:
            UserError: the loss is not a finite number; the message names the step.
        """
        steps, progress = self.config.steps, self.progress
        figure, name = self.task.headline
        with contextlib.ExitStack() as stack:
            bar = stack.enter_context(
                progress_bar(
                    total=steps,
                    initial=progress.step,
                    unit="step",
                    disable=not self.is_chief,
                )
            )
            if self.is_chief:
                self.run.remove_parts()
                begin()
                curves = stack.enter_context(
                    contextlib.closing(
                        Curves(self.run.tensorboard_directory, progress.step + 1)
                    )
                )
            report = ProgressBar(bar, progress.step)
            if progress.history:
                report.show(name, progress.history[-1][figure])
            while progress.step < steps and not self._exhausted():
                row = self._round(report)
                report.show(name, row[figure])
                if self.is_chief:
                    write_csv(self.run.history_path, progress.history)
                    curves.add(row)
                self._save()

    def _round(self, report: ProgressBar) -> dict[str, float]:
        """Trains until the next measurement, and measures; gives the history's row."""
        progress, plan = self.progress, self.task.plan
        # Rounds end at multiples of evaluate_every, also after a resumed run.
        last = min(_next(progress.step, self.config.evaluate_every), self.config.steps)
        report.begin_round(
            (
                (len(batch.items), batch.context_length)
                for batch in plan[progress.step : last]
            ),
            progress.round_steps,
            progress.round_loss,
        )
        while progress.step < last:
            norm = self._train(last, report)
            if progress.step < last:
                self._save()
        taken = plan[last - progress.round_steps : last]
        seconds, loss = progress.round_seconds, progress.round_loss / len(taken)
        begin = time.monotonic()
        measured = self._measure()
        progress.seconds += time.monotonic() - begin
        progress.round_steps, progress.round_seconds, progress.round_loss = 0, 0.0, 0.0
        row = {
            "step": last,
            "examples": progress.examples,
            "seconds": round(progress.seconds, 1),
            **self._rates(taken, seconds),
            "learning_rate": self.task.learner.learning_rate,
            "gradient_norm": norm,
            "loss": loss,
            **measured,
        }
        progress.history.append(row)
        return row

    def _rates(self, taken: Sequence[PlannedBatch], seconds: float) -> dict[str, float]:
        """What a second of these steps was worth."""
        examples = sum(len(batch.items) for batch in taken)
        rates = {
            "steps_per_second": round(len(taken) / seconds, 3),
            "examples_per_second": round(examples / seconds, 1),
        }
        if self.task.flops:
            flops = sum(map(self.task.flops, taken))
            rates["model_gflops"] = round(flops / seconds / 1e9, 1)
        return rates

    def _train(self, last: int, report: ProgressBar) -> float:
        """Takes the steps up to the next checkpoint, or to step `last`.

        Returns:
            The norm of the last gradient.
        """
        progress = self.progress
        end = min(_next(progress.step, self.config.checkpoint_every), last)
        plan = self.task.plan[progress.step : end]
        begin = time.monotonic()
        # Closed at once when a step fails: then the variables have their values back.
        with contextlib.closing(self.train(self.task.maker, plan)) as steps:
            for taken in steps:
                loss, norm = taken
                report.step(loss)
            progress.round_loss = report.wait()
            norm = float(ops.convert_to_numpy(norm))
        if not math.isfinite(norm):
            # The loss is told one step later, and a checkpoint comes before that.
            raise diverged(f"the gradient's norm is {norm} at step {end}")
        seconds = time.monotonic() - begin
        progress.step = end
        progress.examples += sum(len(batch.items) for batch in plan)
        progress.seconds += seconds
        progress.round_steps += len(plan)
        progress.round_seconds += seconds
        return norm

    def _save(self) -> None:
        """Writes a checkpoint."""
        if self.is_chief:
            save_checkpoint(
                self.run.checkpoint_directory, self.task.learner.state, self.progress
            )

    def _measure(self) -> dict[str, float]:
        """Measures the averaged weights, and stores them where they are the best."""
        learner, progress = self.task.learner, self.progress
        with learner.averaged_weights():
            measured = self.task.measure()
            score = self.task.score(measured)
            if not math.isfinite(score):
                raise diverged(f"step {progress.step}: the measured score is {score}")
            if progress.best_score is None or score > progress.best_score:
                progress.best_score = score
                progress.evaluations_since_best = 0
                if self.is_chief:
                    self.run.save_weights(learner.model)
            else:
                progress.evaluations_since_best += 1
        return measured

    def _exhausted(self) -> bool:
        patience = self.config.patience
        return bool(patience) and self.progress.evaluations_since_best >= patience


def _next(step: int, every: int) -> int:
    """The next multiple of `every` after a step."""
    return (step // every + 1) * every
