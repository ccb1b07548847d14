"""Runs commands of the package in processes of their own, and tells how they ended."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from enduring import moments

ROOT = Path(__file__).parents[2]
# What XLA says of the compiled programs that it finds.
REMARK = re.compile(r"[EWI]\d{4} .*(cpu_aot_loader\.cc|XlaSerializedCacheEntry)")
# Of a command, in seconds; one that takes longer hangs.
LONGEST = 1800


def run_command(
    arguments: list[str], plan: dict, cache: Path, prefix: Sequence[str] = ()
) -> subprocess.CompletedProcess:
    """Runs a command of the package with a plan of `enduring.moments`.

    Args:
        arguments: those of the command.
        plan: what happens to it.
        cache: where it keeps what it makes of data. Beside it lies what is compiled,
            which all commands share.
        prefix: a program that starts it, and its options.

    Returns:
        The process. Its exit code is -SIGKILL and a line is added to standard error
        where it or a process that it started has not ended.
    """
    compiled = f"--tf_xla_persistent_cache_directory={cache.with_name('compiled')}"
    process = subprocess.Popen(
        [*prefix, sys.executable, moments.__file__, json.dumps(plan), *arguments],
        cwd=ROOT,
        env=os.environ
        | {
            "XDG_CACHE_HOME": str(cache),
            "CUDA_VISIBLE_DEVICES": "-1",
            "TF_XLA_FLAGS": compiled,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        # A group of its own, in which processes that it starts are too.
        start_new_session=True,
    )
    try:
        # Waits also for processes that hold its standard error.
        output, errors = process.communicate(timeout=LONGEST)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        code, errors = -signal.SIGKILL, f"{errors}\nnot ended in {LONGEST} s"
    lines = errors.splitlines(keepends=True)
    errors = "".join(line for line in lines if not REMARK.match(line))
    return subprocess.CompletedProcess(arguments, code, output, errors)


def ending(process: subprocess.CompletedProcess) -> str:
    """How a process ended."""
    (*_, last) = process.stderr.splitlines() or ["nothing on standard error"]
    return f"exit code {process.returncode}: {last}"
