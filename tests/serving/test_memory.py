"""Tests of qanet.serving.memory, in processes of their own."""

import platform

import pytest

# Blocks of 4 MiB, after a larger one was freed, with small ones between them that stay.
SCRIPT = """
import resource
from pathlib import Path
import numpy as np
{first}
def memory():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()

before = memory()
np.ones(2**21).sum()
blocks, kept = [], []
for _ in range(30):
    blocks.append(np.ones(2**19))
    kept.append(np.ones(2**12))
held = memory()
del blocks
print(before, held, memory())
"""
SETTING = """
from qanet.serving.memory import return_large_blocks
return_large_blocks()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="is for glibc")
def test_large_blocks_are_returned(door):
    def kept(first):
        process = door("-c", SCRIPT.format(first=first))
        before, held, after = map(int, process.stdout.split())
        assert held - before > 100 * 2**20
        return after - before

    assert kept(SETTING) < 10 * 2**20
    # Without it there is nothing to be tested.
    assert kept("") > 50 * 2**20
