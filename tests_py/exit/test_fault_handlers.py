# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A fault of host memory is an exception, whoever else handles such signals."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ..project.test_build import load
from .faulting import WHEN, fault, program

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("copied", [True, False], ids=["copied", "used by a kernel"])
@pytest.mark.parametrize("make", ["truncated", "protected"])
def test_a_fault_is_an_exception(script, driver, make, copied, when):
    file = script.directory / "program.py"
    file.write_text(program(when=when) + fault(make, copied=copied))
    run = script.run([sys.executable, str(file)])
    assert (run.returncode, run.stdout, run.stderr) == (0, "DeviceFaultError\n", "")


UNDER_PYTEST = """
import pytest

@pytest.mark.parametrize("make", [truncated, protected])
def test_it(make):
    assert faulthandler.is_enabled()
    array, take_away = make()
    take_away()
    with pytest.raises(cu.DeviceFaultError):
        x.copy_from(array, stream=s)
        s.sync()
"""


@pytest.mark.parametrize("make", ["truncated", "protected"])
def test_under_pytest(script, driver, make):
    """It enables faulthandler once a conftest.py has imported cudago."""
    folder = script.directory
    (folder / "conftest.py").write_text("import cudago\n")
    (folder / "test_one.py").write_text(program() + UNDER_PYTEST)
    run = script.run([sys.executable, "-m", "pytest", "-q", "-k", make, str(folder)])
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 passed" in run.stdout


# --- others' handlers stay theirs -------------------------------------------------------------

THEIRS = r"""
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct sigaction before[65];
static char *page;
static int mended;

static void mend(int s, siginfo_t *i, void *c) {  /* as a garbage collector's barrier */
    char *at = i->si_addr;
    if (at < page || at >= page + 4096) sigaction(s, &before[s], NULL);
    else mprotect(page, 4096, PROT_READ | PROT_WRITE), mended++;
}
static void tell(int s, siginfo_t *i, void *c) {  /* as a reporter of crashes */
    (void)!write(1, "theirs\n", 7);
    sigaction(s, &before[s], NULL);
}
static void end(int s, siginfo_t *i, void *c) {  /* as PyTorch's in the workers of a DataLoader */
    (void)!write(1, "theirs\n", 7);
    signal(s, SIG_DFL);
    raise(s);
}
static void install(void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction ours = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &ours, &before[SIGSEGV]);
    sigaction(SIGBUS, &ours, &before[SIGBUS]);
}
void install_mending(void) { install(mend); }
void install_telling(void) { install(tell); }
void install_ending(void) { install(end); }
int touch(void) { mprotect(page, 4096, PROT_NONE); *page = 1; return mended; }
void fault(void) { *(volatile int *)8 = 1; }
uintptr_t current(int s) {
    struct sigaction now;
    sigaction(s, NULL, &now);
    return (uintptr_t)now.sa_sigaction;
}
"""


@pytest.fixture(scope="module")
def theirs(tmp_path_factory) -> Path:
    """Build a library with handlers."""
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "theirs.c").write_text(THEIRS)
    cc = load("build_hooks", "extension").find_cc()
    if cc is None:
        pytest.skip("no C compiler here")
    command = [*shlex.split(cc), "-w", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", "theirs.so"]
    subprocess.run([*command, "theirs.c"], cwd=folder, check=True)
    return folder / "theirs.so"


def run_beside(script, theirs, source):
    """Run a program with another library."""
    load_it = f"theirs = ctypes.CDLL({str(theirs)!r})\ntheirs.current.restype = ctypes.c_size_t\n"
    file = script.directory / "program.py"
    file.write_text(program() + load_it + script.dedent(source))
    return script.run([sys.executable, str(file)])


def test_a_handler_that_mends_its_faults(script, driver, theirs):
    run = run_beside(
        script,
        theirs,
        """
        import signal
        theirs.install_mending()
        handlers = [theirs.current(n) for n in (signal.SIGSEGV, signal.SIGBUS)]
        with waiting():
            theirs.touch()
            theirs.touch()
        array, take_away = truncated()
        take_away()
        try:
            x.copy_from(array, stream=s)
            s.sync()
        except cu.DeviceFaultError:
            theirs.touch()
        assert [theirs.current(n) for n in (signal.SIGSEGV, signal.SIGBUS)] == handlers
        print(theirs.touch(), flush=True)  # how many it has mended
        import os; os._exit(0)
        """,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "4\n", "")


# What happens before a fault of somebody's code in C. A handler that was enabled last says so.
BEFORE = {
    "nothing": "",
    "enabled": "enable()",
    "after a section": "enable(); begin(); end()",
    "in a section": "enable(); begin()",
    "enabled in a section": "begin(); enable()",
    "enabled in a section that has ended": "begin(); enable(); end()",
    "in a later section": "begin(); enable(); end(); begin()",
    "disabled": "enable(); begin(); end(); disable()",
    "disabled in a section": "enable(); begin(); disable()",
    "disabled after a section in which it was enabled": "begin(); enable(); end(); disable()",
    "disabled, then a section": "begin(); enable(); end(); disable(); begin()",
    "disabled in a later section": "begin(); enable(); end(); begin(); disable()",
    "enabled again": "enable(); begin(); disable(); enable()",
}


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("way", ["fault", "signal"])
def test_a_fault_in_c_ends_the_process_and_is_told_once(script, driver, theirs, before, way):
    run = run_beside(
        script,
        theirs,
        f"""
        import os, signal
        enable, disable = faulthandler.enable, faulthandler.disable
        def begin():
            global section
            section = waiting()
            section.__enter__()
        def end():
            section.__exit__()
        {BEFORE[before]}
        {{"fault": theirs.fault, "signal": lambda: os.kill(os.getpid(), signal.SIGSEGV)}}[{way!r}]()
        """,
    )
    assert run.returncode == -signal.SIGSEGV
    told = run.stderr.count("Fatal Python error: Segmentation fault")
    assert told == (BEFORE[before].rfind("enable()") > BEFORE[before].rfind("disable()"))
    assert run.stdout == ""


@pytest.mark.parametrize("section", [False, True])
@pytest.mark.parametrize("handler", ["telling", "ending"])
def test_a_handler_that_tells_and_goes(script, driver, theirs, handler, section):
    run = run_beside(
        script,
        theirs,
        f"""
        theirs.install_{handler}()
        if {section}:
            section = waiting()
            section.__enter__()
        theirs.fault()
        """,
    )
    assert (run.returncode, run.stdout) == (-signal.SIGSEGV, "theirs\n")


def test_the_runtime_sends_no_signals(script, driver):
    """A thread without a stack for handlers would not survive Go's for taking turns."""
    run = script(
        """
        import os, signal, time
        import cudago as cu
        import numpy as np
        from cudago import _core
        seen = []
        signal.signal(signal.SIGURG, lambda *args: seen.append(1))
        source = '''.version 7.0 .target sm_70 .address_size 64
        .entry count(.param .u64 p) {
            .reg .u64 %p; .reg .u32 %v; .reg .pred %more;
            ld.param.u64 %p, [p];
            mov.u32 %v, 0;
        again:
            add.u32 %v, %v, 1;
            setp.lt.u32 %more, %v, 4000;
            @%more bra again;
            st.global.u32 [%p], %v;
            ret;
        }'''
        kernel = cu.ObjectCode.from_ptx(source).get_kernel("count")
        d = cu.Device(0)
        s = d.create_stream()
        b = d.allocate(4, stream=s)
        other = d.create_stream()
        data = np.zeros(1 << 23, "u1")
        x = cu.zeros(1 << 23, "u1", stream=other)
        for _ in range(10):
            cu.launch(s, cu.LaunchConfig(64, 32), kernel, b)
            for _ in range(3):
                x.copy_from(data, stream=other)
                other.sync()
        s.sync()
        print(len(seen), flush=True)
        os._exit(0)
        """
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "0\n", "")
