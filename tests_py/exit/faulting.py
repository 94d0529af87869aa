# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Programs in which host memory is gone when the simulated device uses it."""

from __future__ import annotations

# Where the handlers are installed: nowhere, or at one of the places of PROGRAM.
WHEN = ["never", "before the import", "after the import", "after opening", "before each"]

PROGRAM = """
import ctypes, faulthandler, mmap, sys, tempfile
def place(name):
    if name == {when!r}:
        {install}
place("before the import")
import cudago as cu
import numpy as np
place("after the import")
d = cu.Device(0)
s = d.create_stream()
place("after opening")
x = cu.zeros(1 << 18, "i4", stream=s)
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
kept = []

def truncated():  # SIGBUS
    f = tempfile.TemporaryFile()
    f.truncate(1 << 20)
    kept.append(mmap.mmap(f.fileno(), 1 << 20))
    array = np.frombuffer(kept[-1], "i4")
    return array, lambda: f.truncate(4096)

def protected():  # SIGSEGV
    at = libc.mmap(None, ctypes.c_size_t(1 << 20), 3, 0x22, -1, ctypes.c_size_t(0))
    array = np.frombuffer((ctypes.c_char * (1 << 20)).from_address(at), "i4")
    return array, lambda: libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(1 << 20), 0)

PTX = '''.version 7.0 .target sm_70 .address_size 64
.entry read(.param .u64 p) {{
    .reg .u64 %p; .reg .u32 %v;
    ld.param.u64 %p, [p];
    ld.global.u32 %v, [%p+65536];
    st.global.u32 [%p+65536], %v;
    ret;
}}
.entry wait_for(.param .u64 p) {{
    .reg .u64 %p; .reg .u32 %v; .reg .pred %zero;
    ld.param.u64 %p, [p];
    st.volatile.global.u32 [%p+4], 1;
again:
    ld.volatile.global.u32 %v, [%p];
    setp.eq.u32 %zero, %v, 0;
    @%zero bra again;
    ret;
}}'''
code = cu.ObjectCode.from_ptx(PTX)
one = cu.LaunchConfig(1, 1)

class waiting:  # a kernel runs
    def __enter__(self):
        self.s = d.create_stream()
        self.flag = cu.PinnedMemoryResource().allocate(8)
        self.words = np.frombuffer(self.flag, "u4")
        self.words[:] = 0
        cu.launch(self.s, one, code.get_kernel("wait_for"), self.flag)
        while not self.words[1]:
            pass
    def __exit__(self, *args):
        self.words[0] = 1
        self.s.sync()
"""
FAULT = """
array, take_away = {make}()
if {copied}:
    take_away()
    place("before each")
    use = lambda: x.copy_from(array, stream=s)
else:
    pinned = cu.pin(array)
    take_away()
    place("before each")
    use = lambda: cu.launch(s, one, code.get_kernel("read"), pinned)
try:
    use()
    s.sync()
except cu.DeviceFaultError as e:
    print(type(e).__name__, flush=True)
{afterwards}
import os
os._exit(0)
"""


ENABLE = "faulthandler.disable(); faulthandler.enable()"


def program(when: str = "never", install: str = ENABLE) -> str:
    """Return the beginning of a program that has handlers installed at one of its places."""
    return PROGRAM.format(when=when, install=install)


def fault(make: str, *, copied: bool, afterwards: str = "") -> str:
    """Return its end: a fault of host memory that is copied from, or that a kernel uses."""
    return FAULT.format(make=make, copied=copied, afterwards=afterwards)
