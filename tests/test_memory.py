"""Tests of qanet.memory, in processes of their own."""

import platform

import pytest

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="is for glibc"
)

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
from qanet.memory import return_large_blocks
return_large_blocks()
"""


def test_large_blocks_are_returned(door):
    def kept(first):
        process = door("-c", SCRIPT.format(first=first))
        before, held, after = map(int, process.stdout.split())
        assert held - before > 100 * 2**20
        return after - before

    assert kept(SETTING) < 10 * 2**20
    # Without it there is nothing to be tested.
    assert kept("") > 50 * 2**20


# By itself glibc may keep blocks of up to 32 MiB, and a thread's arena has no place
# for 64.
BLOCK = 40 * 2**20
# What a thread computes with such blocks, one after another as steps do, and how many
# bytes the system gave it for that. Huge pages are off, for the system counts one of
# them as one page.
STEPS = f"""
import ctypes
import resource
import threading

PR_SET_THP_DISABLE = 41
ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)

def given():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt * resource.getpagesize()

def steps():
    for _ in range(8):
        block = b"a" * {BLOCK}
        del block

def measure(*_):
    before = given()
    thread = threading.Thread(target=steps)
    thread.start()
    thread.join()
    print(given() - before)
    raise SystemExit
"""
KEEPING = """
from qanet.memory import keep_blocks
keep_blocks()
"""
# What glibc tells of the memory of two threads, the main one and one that ends.
ARENAS = """
thread = threading.Thread(target=steps)
thread.start()
thread.join()
library = ctypes.CDLL(None)
library.malloc_info(0, ctypes.c_void_p.in_dll(library, "stdout"))
library.fflush(None)
"""
# The command measures where it would import Keras.
COMMAND = """
import importlib
from qanet import cli
importlib.import_module("qanet.commands.{name}").load_keras = measure
cli.main({arguments})
"""


def test_kept_blocks_are_given_once(door):
    def given(first):
        return int(door("-c", f"{STEPS}{first}measure()").stdout)

    assert given(KEEPING) < 2 * BLOCK
    # Without it each of the 8 is given anew.
    assert given("") > 7 * BLOCK


def test_threads_that_keep_blocks_have_arenas_of_their_own(door, monkeypatch):
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    process = door("-c", f"{STEPS}{KEEPING}{ARENAS}")
    assert process.stdout.count("<heap nr=") > 1


@pytest.mark.parametrize(
    "command",
    ["train", "pretrain --objective bilm --text FILE", "translate train --data FILE"],
)
def test_trainings_keep_blocks(command, door, tmp_path):
    file = tmp_path / "file"
    file.touch()
    arguments = command.replace("FILE", str(file)).split()
    arguments += ["--output", str(tmp_path / "run")]
    script = COMMAND.format(name=arguments[0], arguments=arguments)
    assert int(door("-c", STEPS + script).stdout) < 2 * BLOCK
