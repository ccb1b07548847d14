"""What becomes of memory that is free: glibc's policy, set for the whole process.

By itself glibc returns a large block to the system once it is free, and asks for the
next anew. Other C libraries are left as they are.
"""

import ctypes
import platform

# Of malloc.h.
TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4
LARGE = 2**20
NEVER = -1


def keep_blocks() -> None:
    """Has memory kept once it is free, for computations that repeat.

    A step of training takes some hundred MiB for what it computes on the way. Where
    they are returned and asked for anew at each step, the system gives and clears each
    page again. In threads other than the main one, a block of more than 64 MiB is
    returned all the same, and so is a heap of 64 MiB, other than the thread's first,
    once nothing in it is in use. One arena for all threads would keep these too, but to
    search it and to wait for it takes far more time than that saves (docs/design.md).
    """
    _set(MMAP_MAX, 0)
    _set(TRIM_THRESHOLD, NEVER)


def return_large_blocks() -> None:
    """Has memory of a mebibyte or more returned to the system once it is free.

    glibc does so by itself at first, but raises the size from which on it does with
    each such block that is freed, to 32 MiB, and keeps all smaller ones between others
    that are in use. What two threads of a server compute thus took ever more memory.
    """
    _set(MMAP_THRESHOLD, LARGE)


def _set(option: int, value: int) -> None:
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).mallopt(option, value)
