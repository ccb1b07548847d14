"""Memory of a process that runs for months."""

import ctypes
import platform

# `M_MMAP_THRESHOLD` of malloc.h.
THRESHOLD = -3
LARGE = 2**20


def return_large_blocks() -> None:
    """Has memory of a mebibyte or more returned to the system once it is free.

    glibc does so by itself at first, but raises the size from which on it does with
    each such block that is freed, to 32 MiB, and keeps all smaller ones between others
    that are in use. What two threads of a server compute thus took ever more memory.
    Other C libraries are left as they are.
    """
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).mallopt(THRESHOLD, LARGE)
