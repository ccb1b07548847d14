"""The training loop: rounds of steps, each closed by a measurement.

There is a checkpoint before and after each measurement, now and then in a long round,
and where a training is stopped; from each it goes on as if it had not stopped.

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

from qanet.console import log, progress_bar
from qanet.datasets.batches import Maker
from qanet.datasets.plans import PlannedBatch, common_size
from qanet.files import write_csv
from qanet.learning_config import LearningConfig
from qanet.run_directory import RunDirectory
from qanet.training.checkpoint import Progress, restore_checkpoint, save_checkpoint
from qanet.training.curves import Curves
from qanet.training.distribution import Distribution
from qanet.training.errors import diverged
from qanet.training.learner import Learner
from qanet.training.progress_bar import ProgressBar
from qanet.training.stopping import stops_deferred


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
        self.train = distribution.training(task.learner, common_size(task.plan))
        self.progress = Progress()

    def resume(self) -> None:
        """Continues from the newest whole checkpoint, if there is one; says which.

        Raises:
            UserError: there are some, and none of them is whole.
        """
        progress = restore_checkpoint(
            self.run.checkpoint_directory, self.task.learner.state
        )
        if progress:
            self.progress = progress
        if self.is_chief:
            log.info(
                f"resumed at step {progress.step:,}"
                if progress
                else "there is no checkpoint yet: starting at the first step"
            )

    def fit(self, begin: Callable[[], None] = lambda: None) -> None:
        """Trains to the end, or until the score has stopped rising.

        Args:
            begin: stores what the training stands on.

        Raises:
            UserError: the loss is not a finite number; the message names the step.
        """
        progress = self.progress
        figure, name = self.task.headline
        with contextlib.ExitStack() as stack:
            bar = stack.enter_context(
                progress_bar(
                    total=self.config.steps,
                    initial=progress.step,
                    unit="step",
                    disable=not self.is_chief,
                )
            )
            if self.is_chief:
                self.run.remove_parts()
                begin()
                measured = progress.history[-1]["step"] if progress.history else 0
                curves = stack.enter_context(
                    contextlib.closing(
                        Curves(self.run.tensorboard_directory, measured + 1)
                    )
                )
            report = ProgressBar(bar, progress.step)
            if progress.history:
                report.show(name, progress.history[-1][figure])
            while self._is_unfinished():
                row = self._round(report)
                report.show(name, row[figure])
                if self.is_chief:
                    write_csv(self.run.history_path, progress.history)
                    curves.add(row)
                self._save()

    def _round(self, report: ProgressBar) -> dict[str, float]:
        """Trains until the next measurement, and measures; gives the history's row."""
        progress, plan = self.progress, self.task.plan
        last = self._end_of_round()
        report.begin_round(
            (
                (len(batch.items), batch.context_length)
                for batch in plan[progress.step : last]
            ),
            progress.round_steps,
            progress.round_loss,
        )
        while progress.step < last:
            with stops_deferred() as stops:
                self._train(last, report, stops)
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
            "gradient_norm": progress.gradient_norm,
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

    def _train(self, last: int, report: ProgressBar, stops: Sequence[int]) -> None:
        """Takes the steps up to the next checkpoint, to step `last`, or to a stop.

        Args:
            last: the step.
            report: shows them.
            stops: as soon as it holds anything, the running step is the last one.
        """
        progress = self.progress
        end = min(_next(progress.step, self.config.checkpoint_every), last)
        plan = self.task.plan[progress.step : end]
        begin, count = time.monotonic(), 0
        # Closed at once when a step fails: then the variables have their values back.
        with contextlib.closing(self.train(self.task.maker, plan)) as steps:
            for taken in steps:
                loss, norm = taken
                report.step(loss)
                count += 1
                if stops:
                    break
            progress.round_loss = report.wait()
            norm = float(ops.convert_to_numpy(norm))
        step = progress.step + count
        if not math.isfinite(norm):
            # The loss is told one step later, and a checkpoint comes before that.
            raise diverged(f"the gradient's norm is {norm} at step {step}")
        seconds = time.monotonic() - begin
        progress.step = step
        progress.examples += sum(len(batch.items) for batch in plan[:count])
        progress.seconds += seconds
        progress.round_steps += count
        progress.round_seconds += seconds
        progress.gradient_norm = norm

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

    def _is_unfinished(self) -> bool:
        """Whether there is anything left to train, or a last round to measure."""
        progress, patience = self.progress, self.config.patience
        if patience and progress.evaluations_since_best >= patience:
            return False
        left = self.config.steps - progress.step
        return left > 0 or (left == 0 and progress.round_steps > 0)

    def _end_of_round(self) -> int:
        """The step of the next measurement.

        Rounds end at multiples of `evaluate_every`, also after a resumed run. One that
        was stopped before its measurement has that alone left.
        """
        step, every = self.progress.step, self.config.evaluate_every
        end = min(_next(step - self.progress.round_steps, every), self.config.steps)
        # It lies behind only where evaluate_every was changed within the round.
        return max(step, end)


def _next(step: int, every: int) -> int:
    """The next multiple of `every` after a step."""
    return (step // every + 1) * every
