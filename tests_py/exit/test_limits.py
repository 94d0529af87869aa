# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A process at a limit is told which one by the import, or works; it is not ended."""

from __future__ import annotations

import os
import re
import textwrap

import pytest

from ..installed import ROOT

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)

# What a program does from its first device to a compiled kernel, and what it may raise for want
# of something.
WORK = """
import cudago as cu
d = cu.Device(0)
s = d.create_stream()
b = d.allocate(1 << 20, stream=s)
def step(f):
    try:
        return f()
    except (cu.CUDAError, ImportError, OSError, MemoryError) as e:
        raised.append(type(e).__name__)
def work():
    step(lambda: (b.fill(1, stream=s), s.sync()))
    step(lambda: cu.PinnedMemoryResource().allocate(4096))
    step(lambda: cu.Graph(d).instantiate())
    step(lambda: cu.sim.create_memory(4096))
    step(lambda: d.create_event(ipc_enabled=True).ipc_descriptor)
    step(lambda: [d.create_stream() for _ in range(8)])
    step(lambda: bytes(b.copy_to(bytearray(1 << 20), stream=s) or s.sync() or b""))
    step(lambda: cu.Program('extern "C" __global__ void k() {}').compile())
raised = []
"""

IMPORTED = """
import os
try:
    import cudago
except (ImportError, OSError) as e:
    print(e)
else:
    print("imported")
"""


def constants(file: str, *names: str) -> list[int]:
    """Return numbers that a source defines, such as ``name = 192 << 20``."""
    text = (ROOT / file).read_text()
    found = [re.search(rf"^\s*{name} = (\d+)(?: << (\d+))?$", text, re.M) for name in names]
    assert all(found), names
    return [int(m[1]) << int(m[2] or 0) for m in found if m]


def test_both_halves_take_the_same(driver):
    go = constants("pyext/border/acquire.go", "mostProcs", "spareThreads", "heapReserve")
    names = ["MOST_PROCS", "SPARE_THREADS", "HEAP_RESERVE_BYTES"]
    assert constants("python/cudago/_limits.py", *names) == go


# --- descriptors ------------------------------------------------------------------------------

# ctypes comes first: newer versions of its libffi keep one open.
WITHOUT_DESCRIPTORS = """
import ctypes, os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
def take_all(but=0):
    held = []
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    for _ in range(but):
        os.close(held.pop())
"""


@pytest.mark.parametrize("left", [0, 1, 3, 5])
def test_no_descriptor_for_the_import(script, driver, left):
    """The import of a module needs one too: with none Python says so itself."""
    needed = constants("python/cudago/_limits.py", "DESCRIPTORS")[0]
    run = script(WITHOUT_DESCRIPTORS + f"take_all({left})\n" + IMPORTED)
    assert (run.returncode, run.stderr) == (0, "")
    if left:
        assert run.stdout == (
            f"cudago cannot start: it needs {needed} file descriptors, and {left} could be opened "
            "(Too many open files): 'ulimit -n' is the limit\n"
        )
    else:
        assert "Too many open files" in run.stdout or "No module named" in run.stdout


@pytest.mark.parametrize("more", [0, 1])
def test_the_descriptors_that_it_asks_for_are_enough(script, driver, more):
    needed = constants("python/cudago/_limits.py", "DESCRIPTORS")[0]
    run = script(
        WITHOUT_DESCRIPTORS
        + f"""
take_all({needed + more})
import cudago as cu
s = cu.Device(0).create_stream()
b = cu.Device(0).allocate(1 << 20, stream=s)
b.fill(1, stream=s)
s.sync()
print("works")
"""
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "works\n", "")


@pytest.mark.parametrize("left", [0, 1, 2])
def test_no_descriptor_after_the_import(script, driver, left):
    run = script(
        WITHOUT_DESCRIPTORS
        + f"""
import cudago as cu
take_all({left})
try:
    d = cu.Device(0)
    s = d.create_stream()
    b = d.allocate(1 << 20, stream=s)
    b.fill(1, stream=s)
    s.sync()
except (cu.CUDAError, OSError) as e:
    print(type(e).__name__)
os._exit(0)
"""
    )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("left", [0, 1, 2])
def test_no_descriptor_after_the_first_device(script, driver, left):
    run = script(
        WITHOUT_DESCRIPTORS + WORK + f"take_all({left})\nwork()\nprint('lives')\nos._exit(0)"
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "lives\n", "")


# --- threads ----------------------------------------------------------------------------------

# Root is not limited: so another user, who may still read root's files.
WITHOUT_THREADS = """
import ctypes, os, resource, sys
libc = ctypes.CDLL(None, use_errno=True)
def limit_threads(more):
    libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
    os.setresuid(54321, 54321, 54321)
    reads = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    head = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)(reads, reads, 0, 0, 0, 0)
    assert libc.syscall({capset}, head, data) == 0
    limit = len(os.listdir("/proc/self/task")) + more
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
""".replace("{capset}", {"x86_64": "126", "aarch64": "91"}[os.uname().machine])

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")


@needs_root
@pytest.mark.parametrize("more", [0, 1, 4, 8])
def test_no_thread_for_the_import(script, driver, more):
    run = script(WITHOUT_THREADS + f"limit_threads({more})\n" + IMPORTED)
    assert (run.returncode, run.stderr) == (0, "")
    assert re.fullmatch(
        rf"cudago cannot start: it needs \d+ threads, and {more} could be started: 'ulimit -u', or "
        "the limit of this container, is for all processes together\n",
        run.stdout,
    )


@needs_root
@pytest.mark.parametrize("more", [20, 40])
def test_threads_enough_for_the_import_are_enough_for_work(script, driver, more):
    run = script(
        WITHOUT_THREADS
        + f"limit_threads({more})\n"
        + WORK
        + "for _ in range(3): work()\nprint(raised)\nos._exit(0)",
        CUDAGO_CACHE="memory",
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "[]\n", "")


@needs_root
@pytest.mark.parametrize("after", ["import", "device", "work"])
def test_no_thread_afterwards(script, driver, after):
    parts = {
        "import": "import cudago\nlimit_threads(0)\n" + WORK + "work()\n",
        "device": WORK + "limit_threads(0)\nwork()\nwork()\n",
        "work": WORK + "work()\nlimit_threads(0)\nwork()\nwork()\n",
    }
    run = script(
        WITHOUT_THREADS + parts[after] + "print('lives')\nos._exit(0)", CUDAGO_CACHE="memory"
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "lives\n", "")


@needs_root
def test_callbacks_need_no_thread_each(script, driver):
    """More of them than threads wait at once, behind one that runs."""
    run = script(
        WITHOUT_THREADS
        + """
import cudago as cu, threading
d = cu.Device(0)
streams = [d.create_stream() for _ in range(64)]
s = d.create_stream()
b = d.allocate(1 << 20, stream=s)
s.callback(lambda: None)  # which starts the thread that runs them
s.sync()
limit_threads(0)
begun, go_on = threading.Event(), threading.Event()
ran = []
def run(i):
    begun.set()
    go_on.wait()
    ran.append(i)
for i, t in enumerate(streams):
    t.callback(run, i)
begun.wait()
for _ in range(100):
    b.fill(1, stream=s)
    s.sync()
go_on.set()
for t in streams:
    t.sync()
print(sorted(ran) == list(range(64)))
os._exit(0)
"""
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "True\n", "")


@needs_root
def test_no_thread_for_the_first_callback(script, driver):
    run = script(
        WITHOUT_THREADS
        + """
import cudago as cu
s = cu.Device(0).create_stream()
limit_threads(0)
try:
    s.callback(print)
except RuntimeError as e:
    print(e)
s.sync()
os._exit(0)
"""
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "no thread for callbacks\n", "")


# --- address space ----------------------------------------------------------------------------

WITHOUT_ADDRESSES = """
import os, resource
def limit_addresses(mib):
    with open("/proc/self/statm") as f:
        used = int(f.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (mib << 20), resource.RLIM_INFINITY))
"""


@pytest.mark.parametrize("mib", [32, 128, 512, 1024, 1536])
def test_no_addresses_for_the_import(script, driver, mib):
    run = script(WITHOUT_ADDRESSES + f"limit_addresses({mib})\n" + IMPORTED)
    assert (run.returncode, run.stderr) == (0, "")
    assert re.fullmatch(
        r"cudago cannot start: it needs \d+ MiB of address space, and \d+ MiB of \d+ MiB are free: "
        "'ulimit -v' is the limit\n",
        run.stdout,
    )


LEAST = """
try:
    limit_addresses(1024)
    import cudago
except ImportError as e:
    least = int(str(e).split(" MiB", 1)[0].split()[-1])
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    limit_addresses(least + {more})
import ctypes
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
def take_all():
    size = 1 << 30
    while size >= 1 << 20:  # Python and its libraries need some
        if libc.mmap(None, ctypes.c_size_t(size), 0, 0x22, -1, ctypes.c_size_t(0)) == 2**64 - 1:
            size //= 2
"""


@pytest.mark.parametrize("more", [16, 64, 512])
def test_the_address_space_that_it_asks_for_is_enough(script, driver, more):
    run = script(
        WITHOUT_ADDRESSES
        + LEAST.format(more=more)
        + WORK
        + "work()\nwork()\nprint('lives')\nos._exit(0)",
        CUDAGO_CACHE="memory",
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "lives\n", "")


@pytest.mark.parametrize("after", ["import", "device", "work"])
def test_no_addresses_afterwards(script, driver, after):
    """What is left is taken by others, and cudago works or raises."""
    opened, more = "limit_addresses(4096)\n", "work()\n" * 2
    parts = {
        "import": "import cudago\ntake_all()\ntry:\n"
        + textwrap.indent(WORK, "    ")
        + "except (cu.CUDAError, ImportError, OSError, MemoryError) as e: print(e)\n",
        "device": WORK + "take_all()\n" + more,
        "work": WORK + "work()\ntake_all()\n" + more,
    }
    run = script(
        WITHOUT_ADDRESSES
        + opened
        + LEAST[LEAST.index("import ctypes") :]
        + parts[after]
        + "print('lives')\nos._exit(0)",
        CUDAGO_CACHE="memory",
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith("lives\n")
