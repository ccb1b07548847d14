"""The training loop: rounds of steps, each closed by a measurement and a checkpoint."""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keras import ops

from qanet.config import LearningConfig
from qanet.console import progress_bar
from qanet.datasets.batches import Maker
from qanet.datasets.plans import PlannedBatch
from qanet.files import held, write_csv
from qanet.run import RunDirectory
from qanet.training.checkpoint import Progress, restore_checkpoint, save_checkpoint
from qanet.training.curves import Curves
from qanet.training.distribution import Distribution
from qanet.training.learner import Learner
from qanet.training.progress import ProgressBar


@dataclass(frozen=True)
class Task:
    """What a loop trains: a batch, a loss and a measurement are what this says.

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
    """Trains a task into a run directory; made and used in a distribution's scope.

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
            begin: stores what the training stands on. It is called once the directory
                is held, so that no other training writes there.

        Raises:
            UserError: the loss is not a finite number; the message names the step. Or
                another process trains in the same directory.
        """
        steps, progress = self.config.steps, self.progress
        figure, name = self.task.headline
        with contextlib.ExitStack() as stack:
            if self.is_chief:
                self.run.directory.mkdir(parents=True, exist_ok=True)
                stack.enter_context(held(self.run.directory))
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
                    save_checkpoint(
                        self.run.checkpoint_directory,
                        self.task.learner.state,
                        progress,
                    )

    def _round(self, report: ProgressBar) -> dict[str, float]:
        """Trains until the next measurement, and measures; gives the history's row."""
        progress, every = self.progress, self.config.evaluate_every
        begin = time.monotonic()
        # Rounds end at multiples of evaluate_every, also after a resumed run.
        last = min((progress.step // every + 1) * every, self.config.steps)
        plan = self.task.plan[progress.step : last]
        loss, norm = self._train(plan, report)
        seconds = time.monotonic() - begin
        measured = self._measure()
        examples = sum(len(batch.items) for batch in plan)
        progress.step = last
        progress.examples += examples
        progress.seconds += time.monotonic() - begin
        row = {
            "step": last,
            "examples": progress.examples,
            "seconds": round(progress.seconds, 1),
            "steps_per_second": round(len(plan) / seconds, 3),
            "examples_per_second": round(examples / seconds, 1),
        }
        if self.task.flops:
            flops = sum(map(self.task.flops, plan))
            row["model_gflops"] = round(flops / seconds / 1e9, 1)
        row |= {
            "learning_rate": self.task.learner.learning_rate,
            "gradient_norm": norm,
            "loss": loss,
            **measured,
        }
        progress.history.append(row)
        return row

    def _train(
        self, plan: Sequence[PlannedBatch], report: ProgressBar
    ) -> tuple[float, float]:
        """Takes the steps of a plan.

        Returns:
            Their mean loss, and the norm of the last gradient.
        """
        report.begin_round((len(batch.items), batch.context_length) for batch in plan)
        # Closed at once when a step fails: then the variables have their values back.
        with contextlib.closing(self.train(self.task.maker, plan)) as steps:
            for told in steps:
                loss, norm = told
                report.step(loss)
            return report.end_round(), float(ops.convert_to_numpy(norm))

    def _measure(self) -> dict[str, float]:
        """Measures the averaged weights, and stores them where they are the best."""
        learner, progress = self.task.learner, self.progress
        with learner.averaged_weights():
            measured = self.task.measure()
            score = self.task.score(measured)
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
