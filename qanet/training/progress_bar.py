"""What a person sees of a training while it runs."""

import math
import time
from collections.abc import Iterable

from keras import ops
from tqdm import tqdm

from qanet.training.errors import diverged

# Seconds between two looks at the loss.
LOOK_EVERY = 0.2


class ProgressBar:
    """Shows speed, loss and the last measurement; stops at a loss that is no number.

    It also says when a step is compiled, which takes as long as many steps: before the
    first one of each length.

    Reading a loss waits for the device. So it is read a few times a second only, and
    the newest step is left to compute meanwhile.

    Args:
        bar: the bar, which counts steps.
        step: steps that are finished.
    """

    def __init__(self, bar: tqdm, step: int = 0):
        self.bar = bar
        self.finished = step
        self.read = 0
        self.shown = {}
        self.label = ""
        self.compiled = set()

    def begin_round(
        self, sizes: Iterable[tuple[int, int]], steps: int = 0, loss: float = 0.0
    ) -> None:
        """Forgets the rounds before.

        Args:
            sizes: examples and length of the steps to come.
            steps: those of the round that an earlier process took.
            loss: the sum of their losses.
        """
        self.sizes = iter(sizes)
        self.examples = [0]
        self._say_what_comes()
        self.unread = []
        self.finished += self.read
        self.read = 0
        self.earlier = steps
        self.total = loss
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

    def wait(self) -> float:
        """Waits for all steps; gives the sum of the round's losses.

        Raises:
            UserError: as `step` does.
        """
        self._read(len(self.unread))
        return self.total

    def _say_what_comes(self) -> None:
        examples, length = next(self.sizes, (0, None))
        self.examples.append(self.examples[-1] + examples)
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
                step = self.finished + self.read
                raise diverged(f"the loss is {loss} at step {step}")
            self.total += loss
        del self.unread[:count]
        self.looked = time.monotonic()
        if count:
            rate = self.examples[self.read] / (self.looked - self.begin)
            mean = self.total / (self.earlier + self.read)
            self.shown |= {"examples/s": f"{rate:.0f}", "loss": f"{mean:.3f}"}
            self.bar.set_postfix(self.shown, refresh=False)
            self.bar.update(count)

    def show(self, name: str, value: float) -> None:
        """Shows the newest measurement."""
        self.shown[name] = f"{value:.1f}"
        self.bar.set_postfix(self.shown)
