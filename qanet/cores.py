"""The cores of a processor that a process may use."""

import os


def own_cores() -> int:
    """How many cores this process may use; all, where the system does not tell.

    How much time a container may use of each is not known here.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
