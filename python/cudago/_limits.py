# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Whether this process may have what the native module takes when it is loaded.

Go's runtime cannot be refused a thread, a descriptor or memory: it ends the process. So it takes
all that it may need at once (pyext/border/acquire.go), and what it takes is asked for here before.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys

# The numbers of pyext/border/acquire.go, and what is needed beside them: descriptors of the poller,
# of the files that say what a container may use, and of Python while it imports; the threads that
# the runtime starts with; its stacks and tables.
MOST_PROCS = 8
SPARE_THREADS = 4
STARTING_THREADS = 4
DESCRIPTORS = 6
HEAP_RESERVE_BYTES = 192 << 20
# Most are tables for an address space of 48 bits. Without the last of them Go 1.26 goes on, and
# maps it over whatever lies at low addresses.
STARTING_BYTES = 1400 << 20


def check() -> None:
    """Refuse to be imported where the runtime would end the process.

    Raises
    ------
    ImportError
        It says what is short, how much of it is needed, and which limit that is.
    """
    if sys.is_finalizing():
        return  # nothing is started any more: the import says so itself
    threads = min(len(os.sched_getaffinity(0)), MOST_PROCS) + SPARE_THREADS + STARTING_THREADS
    short = _short_of_descriptors() or _short_of_addresses(threads) or _short_of_threads(threads)
    if short:
        raise ImportError(f"cudago cannot start: {short}")


def _short_of_descriptors() -> str | None:
    """Open as many as the module needs, and close them."""
    held: list[int] = []
    try:
        while len(held) < DESCRIPTORS:
            held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as e:
        return (
            f"it needs {DESCRIPTORS} file descriptors, and {len(held)} could be opened "
            f"({e.strerror}): 'ulimit -n' is the limit"
        )
    finally:
        for descriptor in held:
            os.close(descriptor)
    return None


def _short_of_threads(wanted: int) -> str | None:
    """Start as many at once as the module does, and wait until they are gone.

    Not as Python's threads: these would still be counted for a while, and each would leave an arena
    of malloc's behind, 64 MiB of address space.
    """
    libc = ctypes.CDLL(None)
    gate = ctypes.create_string_buffer(64)  # a sem_t
    libc.sem_init(gate, 0, 0)
    threads = (ctypes.c_void_p * wanted)()
    at = [ctypes.byref(threads, i * ctypes.sizeof(ctypes.c_void_p)) for i in range(wanted)]
    started = 0
    while started < wanted and not libc.pthread_create(at[started], None, libc.sem_wait, gate):
        started += 1
    for _ in range(started):
        libc.sem_post(gate)
    for thread in threads[:started]:
        libc.pthread_join(ctypes.c_void_p(thread), None)
    if started == wanted:
        return None
    return (
        f"it needs {wanted} threads, and {started} could be started: 'ulimit -u', or the limit of "
        "this container, is for all processes together"
    )


def _short_of_addresses(threads: int) -> str | None:
    """Compare the limit of the address space with what is used of it."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    with open("/proc/self/statm") as f:  # noqa: PTH123 - pathlib takes longer than all this
        used = int(f.read().split()[0]) * resource.getpagesize()
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    if stack == resource.RLIM_INFINITY:
        stack = 2 << 20  # what glibc takes then
    needed = STARTING_BYTES + HEAP_RESERVE_BYTES + threads * stack
    if limit - used >= needed:
        return None
    mib = 1 << 20
    return (
        f"it needs {needed // mib} MiB of address space, and {max(limit - used, 0) // mib} MiB of "
        f"{limit // mib} MiB are free: 'ulimit -v' is the limit"
    )
