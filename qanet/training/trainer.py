"""The training loop: rounds of steps, each closed by an evaluation and a checkpoint."""

import csv
import io
import math
import time

import keras
from tensorboardX import SummaryWriter
from tqdm import tqdm

from qanet.config import Config
from qanet.datasets.batches import (
    BatchMaker,
    plan_training,
    training_dataset,
    training_windows,
)
from qanet.datasets.training_data import TrainingData
from qanet.errors import UserError
from qanet.evaluation.evaluator import evaluate
from qanet.files import write_text
from qanet.reader import Reader
from qanet.run import Run, build_run_model
from qanet.training.checkpoint import Progress, restore_checkpoint, save_checkpoint
from qanet.training.optimizer import AveragedAdam, averaged_weights, regularise


class Trainer:
    """Trains one model into one run directory.

    Args:
        config: the configuration.
        data: training and dev set, and the vocabulary.
        run: where everything is stored.

    Raises:
        UserError: the training set has no example that can be trained on.
    """

    def __init__(self, config: Config, data: TrainingData, run: Run):
        self.config = config
        self.data = data
        self.run = run
        training = config.training
        keras.utils.set_random_seed(training.seed)
        self.model = build_run_model(config, data.vocabulary)
        regularise(self.model, training.l2)
        compile_model(self.model, config)
        self.reader = Reader(self.model, data.vocabulary, config)
        self.trainable_parameters = sum(
            math.prod(variable.shape) for variable in self.model.trainable_variables
        )
        windows = training_windows(data.train, config.data, training.seed)
        self.left_out = len(data.train) - len(windows)
        if not len(windows):
            raise UserError(
                f"{config.data.features or config.data.train}: has no answer of at "
                f"most data.answer_limit={config.data.answer_limit} tokens; give "
                "another file or raise it"
            )
        table = data.vocabulary.table(data.train.words)
        self.maker = BatchMaker(data.train, table, windows)
        self.plan = plan_training(
            windows, config.data, training.batch_size, training.steps, training.seed
        )
        self.progress = Progress()

    def resume(self) -> bool:
        """Continues from the newest whole checkpoint; false where there is none."""
        progress = restore_checkpoint(self.run.checkpoint_directory, self.model)
        if progress:
            self.progress = progress
        return progress is not None

    def fit(self) -> None:
        """Trains to the end, or until the F1 on dev has stopped rising.

        Raises:
            UserError: the loss is not a finite number; the message names the step.
        """
        steps = self.config.training.steps
        writer = SummaryWriter(
            str(self.run.tensorboard_directory), purge_step=self.progress.step
        )
        with (
            writer,
            tqdm(total=steps, initial=self.progress.step, unit="step") as bar,
        ):
            report = ProgressBar(bar, self.config.training.batch_size, self.progress)
            while self.progress.step < steps and not self._exhausted():
                row = self._round(report)
                for name, value in row.items():
                    if name != "step":
                        writer.add_scalar(name, value, row["step"])
                report.show_f1(row["f1"])

    def _round(self, report: "ProgressBar") -> dict[str, float]:
        """Trains until the next evaluation, evaluates, and writes everything down."""
        training, progress = self.config.training, self.progress
        begin = time.monotonic()
        first = progress.step
        # Rounds end at multiples of evaluate_every, also after a resumed run.
        last = min(
            (first // training.evaluate_every + 1) * training.evaluate_every,
            training.steps,
        )
        history = self.model.fit(
            training_dataset(self.maker, self.plan[first:last]),
            shuffle=False,
            verbose=0,
            callbacks=[report],
        )
        seconds = time.monotonic() - begin
        with averaged_weights(self.model):
            metrics = evaluate(
                self.reader,
                self.data.dev_examples,
                self.data.dev,
                training.evaluation_questions,
                progress="evaluating",
            ).metrics
            if metrics["f1"] > progress.best_f1:
                progress.best_f1 = metrics["f1"]
                progress.evaluations_since_best = 0
                self.run.save_weights(self.model)
            else:
                progress.evaluations_since_best += 1
        progress.step = last
        progress.seconds += time.monotonic() - begin
        row = {
            "step": last,
            "examples": last * training.batch_size,
            "seconds": round(progress.seconds, 1),
            "examples_per_second": round(
                (last - first) * training.batch_size / seconds, 1
            ),
            "learning_rate": float(self.model.optimizer.learning_rate),
            "gradient_norm": float(self.model.optimizer.gradient_norm),
            "loss": history.history["loss"][0],
            "exact_match": metrics["exact_match"],
            "f1": metrics["f1"],
        }
        progress.history.append(row)
        self._write_history()
        save_checkpoint(self.run.checkpoint_directory, self.model, progress)
        return row

    def _exhausted(self) -> bool:
        patience = self.config.training.patience
        return bool(patience) and self.progress.evaluations_since_best >= patience

    def _write_history(self) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=self.progress.history[0])
        writer.writeheader()
        writer.writerows(self.progress.history)
        write_text(self.run.history_path, text.getvalue())


def compile_model(model: keras.Model, config: Config) -> None:
    """Gives the model its loss, -log p_start - log p_end, and its optimizer."""
    cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(
        optimizer=AveragedAdam(config.training),
        loss={"start_logits": cross_entropy, "end_logits": cross_entropy},
        jit_compile=True,
    )
    # Now and not at the first step, so that a checkpoint finds its variables.
    model.optimizer.build(model.trainable_variables)


class ProgressBar(keras.callbacks.Callback):
    """Shows examples/s, loss and dev F1, and stops at a loss that is no number.

    Args:
        bar: the bar, which counts steps.
        batch_size: examples in a step.
        progress: where the training stands.
    """

    def __init__(self, bar: tqdm, batch_size: int, progress: Progress):
        super().__init__()
        self.bar = bar
        self.batch_size = batch_size
        self.progress = progress
        self.shown = {}
        if progress.history:
            self.show_f1(progress.history[-1]["f1"])

    def on_epoch_begin(self, epoch, logs=None):
        self.begin = time.monotonic()

    def on_train_batch_end(self, batch, logs=None):
        loss = float(logs["loss"])
        if not math.isfinite(loss):
            step = self.progress.step + batch + 1
            raise UserError(
                f"the loss is {loss} at step {step}; start a new run with a lower "
                "training.learning_rate (--set training.learning_rate=...)"
            )
        rate = (batch + 1) * self.batch_size / (time.monotonic() - self.begin)
        self.shown |= {"examples/s": f"{rate:.0f}", "loss": f"{loss:.3f}"}
        self.bar.set_postfix(self.shown, refresh=False)
        self.bar.update(1)

    def show_f1(self, f1: float) -> None:
        """Shows the F1 of the newest evaluation."""
        self.shown["dev F1"] = f"{f1:.1f}"
        self.bar.set_postfix(self.shown)
