"""Ctrl-C and SIGTERM wait for the end of a step, so that no finished step is lost."""

import contextlib
import signal
import threading
from collections.abc import Iterator

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def stops_deferred() -> Iterator[list[int]]:
    """Within this context Ctrl-C and SIGTERM wait; what has come is raised at its end.

    A second one does not wait, once Python runs: within a compiled step several count
    as one. An error ends the context without them. Signals that Python does not handle,
    as SIGTERM where nobody has asked for it, stay as they are, and so do all outside
    the main thread.

    Yields:
        The signals that have come.
    """
    came: list[int] = []
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in SIGNALS}
    handlers = {n: handler for n, handler in handlers.items() if callable(handler)}

    def note(number, frame):
        came.append(number)
        if len(came) > 1:
            handlers[number](number, frame)

    for number in handlers:
        signal.signal(number, note)
    try:
        yield came
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])
