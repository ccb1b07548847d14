"""Tries inputs in a process of its own, which may hang or die of one of them."""

import contextlib
import multiprocessing
import os
import resource
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from qanet.console import progress_bar

# Seconds for an input, and for all that is to be ready before the first.
LIMIT, READY = 20.0, 600.0
# Bytes of a process; what asks for more is refused it.
MEMORY = 12 * 2**30

# Tries an input that it draws, and says what went wrong, if anything did.
Attempt = Callable[[Random], str | None]
# From the files that inputs are made of, and a directory for what they write.
Target = Callable[[Path, Path], AbstractContextManager[Attempt]]


class _Lost(Exception):
    """The process has died, or says nothing."""


def try_inputs(
    name: str,
    target: Target,
    base: Path,
    seed: int,
    numbers: Sequence[int],
    limit: float = LIMIT,
) -> list[str]:
    """Tries the inputs of some numbers; an input is drawn from name, seed and number.

    Where one takes the process with it, the others go on in another.

    Args:
        name: what the target is called.
        target: what tries them; a function of a module.
        base: files that inputs are made of.
        seed: of all that is drawn.
        numbers: which inputs.
        limit: seconds for one.

    Returns:
        A line for each that did not end as it should.

    Raises:
        RuntimeError: the target cannot be made ready.
    """
    wrong, left = [], [*numbers]
    with progress_bar(total=len(left), desc=name, unit="input") as bar:
        while left:
            with _process(name, target, base, seed, left) as told:
                try:
                    told(READY)
                except _Lost as lost:
                    raise RuntimeError(f"{name} cannot be made ready: {lost}") from None
                while left:
                    number = left.pop(0)
                    try:
                        said, is_lost = told(limit), False
                    except _Lost as lost:
                        said, is_lost = str(lost), True
                    if said:
                        wrong.append(f"{name}, seed {seed}, input {number}: {said}")
                        bar.set_postfix(wrong=len(wrong))
                    bar.update()
                    if is_lost:
                        break
    return wrong


def try_one(name: str, target: Target, base: Path, seed: int, number: int) -> None:
    """Tries one input here, prints what went wrong and leaves what it wrote."""
    scratch = Path(tempfile.mkdtemp(prefix=f"{name}-{seed}-{number}-"))
    print(f"written to {scratch}")
    with target(base, scratch) as attempt:
        print(attempt(drawn(name, seed, number)) or "it ends as it should")


@contextlib.contextmanager
def _process(name, target, base, seed, numbers) -> Iterator[Callable[[float], str]]:
    """Within this context a process tries the inputs.

    Yields:
        What waits some seconds for the process to be ready, or for its next input, of
        which it tells what went wrong; raises `_Lost`.
    """
    # A new interpreter: threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        printed = Path(scratch) / "printed"
        process = context.Process(
            target=_try_all,
            args=(theirs, printed, name, target, base, seed, numbers),
        )
        process.start()
        theirs.close()

        def told(seconds: float) -> str:
            if not ours.poll(seconds):
                raise _Lost(f"no end within {seconds:g} seconds")
            try:
                return ours.recv()
            except EOFError:
                process.join()
                *_, last = ["", *printed.read_text("utf-8", "replace").splitlines()]
                code = process.exitcode
                raise _Lost(f"the process died, exit code {code}: {last}") from None

        try:
            yield told
        finally:
            # It may have ended by itself, and what it has started may go on.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.join()
            ours.close()


def _try_all(
    ended: Connection,
    printed: Path,
    name: str,
    target: Target,
    base: Path,
    seed: int,
    numbers: Sequence[int],
) -> None:
    """Tries all inputs and says of each that it ended."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # What libraries write there themselves would be lost.
    with printed.open("wb") as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    scratch = printed.with_name("scratch")
    scratch.mkdir()
    with target(base, scratch) as attempt:
        ended.send("")
        for number in numbers:
            try:
                said = attempt(drawn(name, seed, number))
            except Exception as error:
                said = described(error)
            ended.send(said or "")


def described(error: BaseException) -> str:
    """An error and where it arose, on one line."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/qanet/" in frame.filename] or frames
    places = dict.fromkeys(
        f"{Path(frame.filename).name}:{frame.lineno}" for frame in (own[-1], frames[-1])
    )
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{text[:200]} ({', '.join(places)})"


def drawn(name: str, seed: int, number: int) -> Random:
    """What an input is drawn from."""
    return Random(f"{name} {seed} {number}")
