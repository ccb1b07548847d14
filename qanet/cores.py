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
    try:
        quota, period = (CONTROL_GROUPS / "cpu.max").read_text().split()
    except (OSError, ValueError):
        quota, period = _first_version()
    return math.inf if quota in ("max", "-1") else int(quota) / int(period)


def _first_version() -> tuple[str, str]:
    """Quota and period as the first version of control groups has them."""
    names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    try:
        quota, period = (
            (CONTROL_GROUPS / "cpu" / name).read_text().strip() for name in names
        )
    except OSError:
        return "max", "1"
    return quota, period
