"""The cores of a processor that a process may use."""

import math
import os
from pathlib import Path

CONTROL_GROUPS = Path("/sys/fs/cgroup")


def own_cores() -> int:
    """How many cores this process may use, a container's share included, at least one.

    All cores, where the system does not tell.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, math.ceil(min(cores, _share())))


def _share() -> float:
    """The cores' worth of time that a container is given; infinite without a limit."""
    # Of the second version of control groups, and of the first.
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            texts = [(CONTROL_GROUPS / name).read_text() for name in names]
            quota, period = " ".join(texts).split()
            return math.inf if quota in ("max", "-1") else int(quota) / int(period)
        except (OSError, ValueError, ZeroDivisionError):
            continue
    return math.inf
