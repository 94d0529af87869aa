# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""While the interpreter ends, calls of other threads raise errors, and none waits forever."""

from __future__ import annotations

import pytest

HERE = """
import atexit, gc, os, sys, threading, time
import cudago as cu
d = cu.Device()
s = d.create_stream()
"""

# The main thread is the one that Python calls so, not the one that imported cudago.
IN_A_WORKER = """
import atexit, gc, os, sys, threading, time
def first():
    global cu, d, s
    import cudago as cu
    d = cu.Device()
    s = d.create_stream()
    pass  # hook
worker = threading.Thread(target=first)
worker.start()
worker.join()
"""

NEVER = """
never = threading.Event()
def block(*streams):
    graph = cu.Graph()
    graph.callback(never.wait)
    step = graph.instantiate()
    for stream in streams:
        step.launch(stream)
"""

LATE_USES = """
class Late:
    def __del__(self, print=print):
        for use in (s.sync, d.create_stream, d.sync, lambda: s.is_done):
            try:
                use()
            except cu.ClosedError as e:
                print(e, flush=True)
        s.close()  # which is no mistake
        s.__exit__(None, None, None)
late = Late()
"""

ENDING = "cudago is closed: the interpreter is ending\n"


def test_the_main_thread_may_use_it_at_exit_after_a_worker_imported_it(script, driver):
    hook = 'atexit.register(lambda: (s.sync(), print("hook", flush=True)))'
    run = script(IN_A_WORKER.replace("pass  # hook", hook) + LATE_USES)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "hook\n" + 4 * ENDING


def test_an_error_in_del_at_exit_is_shown(script, driver):
    run = script(
        IN_A_WORKER
        + script.dedent("""
        class Late:
            def __del__(self):
                s.sync()
        late = Late()
        """)
    )
    assert run.returncode == 0
    assert run.stderr.startswith("Exception ignored ")  # in, or since 3.14 while calling
    assert run.stderr.endswith("ClosedError: " + ENDING)


LATE_KERNEL = """
import cudago as cu
s = cu.Device().create_stream()
SOURCE = "#include <cuda.h>\\nextern \\"C\\" __global__ void f(int n) {}"
class Late:
    def __init__(self):
        self.kernel = cu.ObjectCode.from_ptx(PTX)["f"]
        self.code, self.program = self.kernel.object_code, cu.Program(SOURCE)
        self.config = cu.LaunchConfig(1, 1)
    def __del__(self, print=print, Closed=cu.ClosedError):
        kernel, code, config = self.kernel, self.code, self.config
        for use in (
            kernel.info,
            lambda: kernel.bind(config, 1),
            lambda: kernel[1, 1, s](1),
            lambda: kernel.parameter_names,
            self.program.compile,
            lambda: code.save("nowhere/code"),
            lambda: code["g"],
        ):
            try:
                use()
            except Closed as e:
                print(e, flush=True)
import builtins
builtins.late = Late()
"""


def test_kernels_say_so_at_exit(script, driver):
    ptx = ".version 7.0\n.target sm_75\n.address_size 64\n.entry f(.param .u32 n) { ret; }"
    run = script(f"PTX = {ptx!r}\n" + LATE_KERNEL)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == 7 * ENDING


def test_a_worker_that_imported_it_goes_on_after_the_main_thread(script, driver):
    run = script(
        """
        import threading
        def work():
            threading.main_thread().join()
            import cudago as cu
            with cu.Device().create_stream() as s:
                s.sync()
            cu.finalize(cu.Device(), print, "finalized")
        threading.Thread(target=work).start()
        """
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "finalized\n", "")


# Each is what a daemon thread does while the interpreter ends. A hook that was registered before
# cudago's runs after it: it gives the daemons time to do it.
DAEMONS = {
    "raises": "while True: s.record()",
    "waits": "block(s); s.sync()",
    "waits for the device": "block(s); d.sync()",
    "waits for an event": "block(s); s.record().sync()",
    "goes on after errors": """
        while True:
            try:
                s.sync()
            except cu.ClosedError:
                ended.set()
        """,
    "is left in a with block": """
        with d.create_stream() as own, d.allocate(8, stream=own) as buffer:
            while True:
                buffer.fill(1, stream=own)
        """,
    "is in a destructor": """
        class Thing:
            def __del__(self):
                s.sync()
        while True:
            Thing()
        """,
}


@pytest.mark.parametrize("start", [HERE, IN_A_WORKER], ids=["imported here", "in a worker"])
@pytest.mark.parametrize("name", DAEMONS)
def test_a_daemon_thread_that(name, start, script, driver):
    body = "\n".join("    " + line for line in script.dedent(DAEMONS[name]).splitlines())
    ends = name != "is in a destructor"
    limit_s = 30 if ends else 0.3
    run = script(
        f"""
import atexit, threading
ended = threading.Event()
atexit.register(lambda: (ended.wait({limit_s}), print("end", ended.is_set(), flush=True)))
"""
        + start
        + NEVER
        + f"""
started = threading.Event()
def work():
    started.set()
{body}
def seen():
    try:
        work()
    except cu.ClosedError:
        ended.set()
        raise
for _ in range(3):
    threading.Thread(target=seen, daemon=True).start()
import _thread
_thread.start_new_thread(seen, ())
started.wait()
time.sleep(0.1)
"""
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert ("end True" in run.stdout) == ends


def test_other_errors_of_daemon_threads_are_shown(script, driver):
    run = script(
        HERE
        + script.dedent("""
        atexit.unregister(cu._exit.shutdown)
        over = threading.Event()
        atexit.register(lambda: over.wait(10))
        atexit.register(cu._exit.shutdown)
        def work():
            try:
                while True:
                    s.record()
            except cu.ClosedError:
                pass
            raise LookupError("mine")
        shows = threading.excepthook
        def show(raised):
            shows(raised)
            over.set()
        threading.excepthook = show
        threading.Thread(target=work, daemon=True, name="worker").start()
        """)
    )
    assert run.returncode == 0
    assert "Exception in thread worker" in run.stderr
    assert "LookupError: mine\n" in run.stderr


@pytest.mark.parametrize("threads", ["", "import threading"])
def test_an_import_in_a_hook_of_atexit(threads, script):
    """It works until the interpreter is gone; nothing waits for a callback that cannot run."""
    run = script(
        f"""
        import atexit, sys
        {threads}
        class Late:
            def __del__(self):
                try:
                    s.sync()
                except Exception as e:
                    print(e, flush=True)
        def hook():
            global cu, s, kept
            import cudago as cu
            s = cu.Device().create_stream()
            graph = cu.Graph()
            graph.callback(lambda: print("called", flush=True))
            with graph.instantiate() as step:
                step.launch(s)
                s.sync()
            kept = cu.Device().allocate(1 << 20, stream=s)
            import threading
            waiting = cu.Graph()
            waiting.callback(threading.Event().wait)
            waiting.instantiate().launch(s)
            late = Late()
            late.itself = late
        atexit.register(hook)
        """
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "called\n" + ENDING, "")


def test_an_import_in_a_destructor_when_the_interpreter_has_ended(script):
    run = script(
        """
        class Late:
            def __del__(self):
                try:
                    import cudago
                except ImportError as e:
                    print(e, flush=True)
        late = Late()
        late.itself = late
        del late
        """
    )
    expected = "cudago cannot be imported: the interpreter is ending\n"
    assert (run.returncode, run.stdout, run.stderr) == (0, expected, "")


@pytest.mark.parametrize("delay_ms", [0, 5, 20, 50, 100])
def test_an_import_in_a_daemon_thread_while_the_interpreter_ends(delay_ms, script, driver):
    run = script(
        f"""
        import threading, time
        def work():
            import cudago as cu
            while True:
                with cu.Device().create_stream() as s:
                    s.sync()
        threading.Thread(target=work, daemon=True).start()
        time.sleep({delay_ms / 1000})
        """
    )
    assert (run.returncode, run.stderr) == (0, "")
