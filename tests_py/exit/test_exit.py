# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Processes end in time, with exit code 0 and a silent stderr, whatever they leave open."""

from __future__ import annotations

import pytest

START = """
import atexit, gc, os, signal, sys, threading, time
import numpy as np
import cudago as cu
d = cu.Device()
s = d.create_stream()
buffer = d.allocate(256, stream=s)
host = np.zeros(64, "i4")
source = '''
extern "C" __global__ void add(int* p, int n) { p[threadIdx.x] += n; }
extern "C" __global__ void spin(volatile int* p) { while (*p == 0) {} }
'''
config = cu.LaunchConfig(grid=1, block=64)

def build():
    graph = cu.Graph()
    graph.memcpy(buffer, host.copy(), name="up").callback(lambda: None)
    return graph.instantiate()
"""

SCRIPTS = {
    "nothing closed": """
        step = build()
        step.launch(s)
        event = s.record()
        view, pointer, tensor = buffer[8:16], buffer.ptr + 4, buffer.view("i4")
        pinned = cu.PinnedMemoryResource().allocate(64)
        managed = cu.ManagedMemoryResource(d).allocate(64, stream=s)
        pool = cu.DeviceMemoryResource(d, pool=cu.PoolOptions())
        pooled = pool.allocate(64, stream=s)
        array = np.frombuffer(pinned, "i4")
        """,
    "loops and memory of graphs": """
        kernel = cu.Program(source).compile()["add"]
        graph, other = cu.Graph(), cu.Graph()
        scratch = graph.allocate(1 << 20)
        left, view = scratch.buffer, scratch.buffer[:256]
        with d.create_event() as event:
            scratch.launch(config, kernel, left, 1).record(event)
        n = cu.full((64,), 50, "i4", stream=s)
        go = other.condition(default=1)
        body = other.while_loop(go).body
        body.launch(config, kernel, n, -1).set_condition(go, n[:1])
        step, loop = graph.instantiate(), other.instantiate()
        step.launch(s)
        loop.launch(s)
        """,
    "a graph that nobody has looked at": """
        graph = cu.Graph()
        graph.memset(buffer, 1).memcpy(host, buffer)
        """,
    "registered memory": """
        locked = cu.pin(host)
        array = np.frombuffer(cu.pin(bytearray(4096)), "i4")
        kernel = cu.Program(source).compile()["add"]
        for _ in range(100):
            cu.launch(s, config, kernel, locked, 1)
        with cu.Graph() as graph:
            graph.memset(cu.pin(bytearray(64)), 1)
            step = graph.instantiate()
        step.launch(s)
        """,
    "kernels in flight": """
        kernel = cu.Program(source).compile()["add"]
        for _ in range(500):
            cu.launch(s, config, kernel, buffer, 1)
        """,
    "launches in flight": """
        step = build()
        for _ in range(300):
            step.launch(s)
        step["up"].update(src=np.ones(64, "i4"))
        step.launch(s)
        """,
    "dropped while in flight": """
        for _ in range(50):
            build().launch(s)
        del s, buffer
        """,
    "a callback that waits for ever": """
        never = threading.Event()
        graph = cu.Graph()
        graph.callback(never.wait)
        step = graph.instantiate()
        step.launch(s)
        """,
    "a callback that runs at exit": """
        def slow():
            time.sleep(0.3)
        graph = cu.Graph()
        graph.callback(slow).callback(slow)
        step = graph.instantiate()
        step.launch(s)
        """,
    "an open capture": """
        context = s.capture()
        graph = context.__enter__()
        buffer.fill(1, stream=s)
        buffer[:4].copy_from(buffer[4:8], stream=s)
        """,
    "finalizers": """
        class Thing: ...
        thing = Thing()
        cu.finalize(thing, print, "finalized")
        cu.finalize(d, lambda: (s.sync(), build().launch(s), s.sync()))
        """,
    "objects in cycles": """
        class Owner: ...
        for _ in range(10):
            owner = Owner()
            owner.step = build()
            owner.buffer = d.allocate(8, stream=s)
            owner.self = owner
        del owner
        """,
    "objects of modules and classes": """
        class Owner:
            step = build()
            stream = d.create_stream()
        sys.kept = Owner
        import builtins
        builtins.kept = (build(), s, buffer)
        """,
    "use in __del__": """
        class Owner:
            def __init__(self):
                self.handle, self.stream = s.handle, s
            def __del__(self):
                self.stream.is_closed
                buffer.size
                self.stream.handle
                cu.live_objects() if cu else None
        owner = Owner()
        sys.kept = Owner()
        """,
    "use in atexit": """
        def late():
            out = np.zeros(64, "i4")
            step = build()
            step.launch(s)
            buffer.copy_to(out, stream=s)
            s.sync()
            with d.create_stream() as other:
                other.sync()
        atexit.register(late)
        """,
    "threads that wait": """
        started = threading.Event()
        graph = cu.Graph()
        never = threading.Event()
        graph.callback(lambda: (started.set(), never.wait()))
        step = graph.instantiate()
        step.launch(s)
        def wait():
            s.sync()
        for _ in range(4):
            threading.Thread(target=wait, daemon=True).start()
        started.wait()
        """,
    "threads that work": """
        def work():
            own = d.create_stream()
            while True:
                with d.allocate(64, stream=own) as b:
                    b.fill(1, stream=own)
                build().launch(own)
                cu.live_objects()
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.2)
        """,
    "a thread that outlives main": """
        def work():
            time.sleep(0.2)
            with d.create_stream() as own:
                build().launch(own)
                own.sync()
            print("worked")
        threading.Thread(target=work).start()
        """,
    "exit in a thread": """
        def work():
            build().launch(s)
            sys.exit(3)
        t = threading.Thread(target=work)
        t.start()
        t.join()
        """,
    "a subprocess": """
        import subprocess
        build().launch(s)
        subprocess.run([sys.executable, "-c", "print('child')"], check=True)
        """,
    "modules taken away": """
        step = build()
        step.launch(s)
        for name in [n for n in sys.modules if n.startswith("cudago")]:
            del sys.modules[name]
        """,
    "collector off, and on at the end": """
        gc.disable()
        graph = cu.Graph()
        graph.callback(lambda: graph)
        step = graph.instantiate()
        step.launch(s)
        atexit.register(gc.collect)
        """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_exit(name, script, driver):
    run = script(START + script.dedent(SCRIPTS[name]))
    assert (run.returncode, run.stderr) == (0, "")


# The C library gives everything that is freed back to the system: reading it is a crash.
GIVEN_BACK = {
    "MALLOC_MMAP_THRESHOLD_": "1",
    "MALLOC_MMAP_MAX_": "1000000",
    "MALLOC_TOP_PAD_": "0",
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
}


# Not with daemon threads: CPython 3.13 reads the state of a thread that it has freed, in drop_gil.
@pytest.mark.parametrize(
    "name", ["kernels and copies of a graph", *(n for n in SCRIPTS if n != "threads that work")]
)
@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_nothing_is_read_that_was_freed_before(name, script, driver):
    nodes = """
        kernel = cu.Program(source).compile()["add"]
        graph = cu.Graph()
        node = graph.launch(config, kernel, buffer, 1)
        node.launch(config, kernel, buffer, 2).memcpy(buffer, host.copy())
        """
    run = script(START + script.dedent(SCRIPTS.get(name, nodes)), **GIVEN_BACK)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_kernel_that_never_ends(script, driver):
    body = """
    kernel = cu.Program(source).compile()["spin"]
    buffer.fill(0, stream=s)
    cu.launch(s, cu.LaunchConfig(1, 1), kernel, buffer)
    """
    run = script(START + script.dedent(body))
    assert (run.returncode, run.stderr) == (0, "")


def test_exit_code_is_kept(script, driver):
    run = script(START + "build().launch(s)\nsys.exit(7)")
    assert (run.returncode, run.stderr) == (7, "")
    run = script(START + "build().launch(s)\nos._exit(8)")
    assert (run.returncode, run.stderr) == (8, "")


def test_an_exception_is_all_that_is_said(script, driver):
    run = script(START + "build().launch(s)\nraise LookupError('mine')")
    assert run.returncode == 1
    assert run.stderr.startswith("Traceback (most recent call last):")
    assert run.stderr.endswith("LookupError: mine\n")
    assert len(run.stderr.splitlines()) == 4


def test_what_is_left_is_released_at_exit(script, driver):
    """The driver sees each release, in the right order, before the process is torn down."""
    body = """
    step = build()
    step.launch(s)
    s.sync()
    """
    run = script(START + script.dedent(body), CUDAGO_TRACE="1")
    assert run.returncode == 0
    ends = ["cuGraphExecDestroy(", "cuGraphDestroy(", "cuMemFreeAsync(", "cuStreamDestroy("]
    assert all(end in run.stderr for end in ends)
    stream = run.stderr.index("cuStreamDestroy(")
    assert run.stderr.rindex("cuMemFreeAsync(") < stream  # in whose order it is
    assert run.stderr.index("cuGraphExecDestroy(") < stream


@pytest.mark.parametrize("loaded", [False, True])
def test_what_is_called_after_the_end_is_closed(loaded, script, driver):
    """Also what would have to be imported, which is no longer possible."""
    run = script(
        START
        + script.dedent(f"""
        import builtins
        pool = cu.DeviceMemoryResource(d, pool=cu.PoolOptions())
        if {loaded}:
            cu.memory_summary(), cu.copy_batch, pool.options, pool.statistics

        class Late:
            def __init__(self):
                self.cu, self.s, self.b, self.pool, self.write = cu, s, buffer, pool, os.write

            def __del__(self):
                calls = (
                    lambda: self.cu.memory_summary(),
                    lambda: self.cu.copy_batch([(self.b, self.b)], stream=self.s),
                    lambda: self.pool.options,
                    lambda: self.pool.statistics,
                    lambda: self.cu.who_retains(self.b),
                )
                for call in calls:
                    try:
                        call()
                    except Exception as e:
                        self.write(1, f"{{type(e).__name__}}: {{e}}\\n".encode())

        builtins.late = Late()
        """)
    )
    text = "ClosedError: cudago is closed: the interpreter is ending"
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [text] * 5


def test_only_the_interpreter(script):
    """Nothing was opened, so there is nothing to end."""
    run = script("import cudago\n")
    assert (run.returncode, run.stderr) == (0, "")


def test_printing_of_kernels_is_flushed(script, driver):
    run = script(
        START
        + script.dedent("""
        text = 'extern "C" __global__ void k() { printf("from the device\\\\n"); }'
        cu.launch(s, cu.LaunchConfig(1, 1), cu.Program(text).compile()["k"])
        s.sync()
        """)
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "from the device\n", "")


def test_what_is_open_at_the_end_is_a_warning(script, driver):
    source = """
    import warnings, cudago as cu
    warnings.simplefilter("always")
    cu.debug.resource_warnings()
    device = cu.Device()
    stream = device.create_stream()
    graph = cu.Graph()
    graph.memset(device.allocate(64, stream=stream), 1)
    step = graph.instantiate()
    step.launch(stream)
    stream.sync()
    """
    ended = script(script.dedent(source))
    assert ended.returncode == 0
    assert "Traceback" not in ended.stderr
    assert "ResourceWarning: unclosed <cudago.GraphExec>" in ended.stderr


def test_a_late_use_says_that_the_interpreter_is_ending(script, driver):
    """Also where a module is imported first, which Python refuses then with an ImportError."""
    body = """
    import builtins

    def of_floats(*args):
        twice = cu.elementwise("float x", "float z", "z = 2 * x")
        return twice, cu.reduce("float x", "float z", "a + b")

    class Late:
        def __init__(self):
            self.cu, self.np, self.s, self.os = cu, np, s, os
            self.t = cu.zeros((2, 3), "f4", stream=s)
            self.array = np.zeros((2, 3), "f4")
            self.copied = cu.OpaqueArray((2, 3), "f4", stream=s)
            self.kernels = of_floats()

        def __del__(self):
            cu, t, array, s = self.cu, self.t, self.array, self.s
            twice, summed = self.kernels
            for name, call in {
                "fill": lambda: t.fill(1, stream=s),
                "numpy": lambda: t.numpy(stream=s),
                "item": lambda: t[0, 0].item(stream=s),
                "copy_from": lambda: t.copy_from([[1] * 3] * 2, stream=s),
                "copy_from number": lambda: t.copy_from(1, stream=s),
                "copy_from array": lambda: t.copy_from(array, stream=s),
                "copy_to": lambda: t.copy_to(array, stream=s),
                "copy_to bytes": lambda: t.copy_to(bytearray(24), stream=s),
                "astype": lambda: t.astype("i4", stream=s),
                "contiguous": lambda: t.T.contiguous(stream=s),
                "asarray": lambda: cu.asarray(array, stream=s),
                "asarray list": lambda: cu.asarray([1, 2], stream=s),
                "arange": lambda: cu.arange(5, stream=s),
                "zeros": lambda: cu.zeros(5, stream=s),
                "full": lambda: cu.full(5, 1, stream=s),
                "ones_like": lambda: cu.ones_like(t, stream=s),
                "from_dlpack": lambda: cu.from_dlpack(array),
                "elementwise": lambda: twice(t, stream=s),
                "reduce": lambda: summed(t, stream=s),
                "array numpy": lambda: self.copied.numpy(stream=s),
                "array copy_from": lambda: self.copied.copy_from([[1] * 3] * 2, stream=s),
            }.items():
                try:
                    call()
                    said = "nothing"
                except BaseException as e:
                    said = f"{type(e).__name__}: {e}"
                if said != "ClosedError: cudago is closed: the interpreter is ending":
                    self.os.write(1, f"{name} said {said}\\n".encode())
            self.os.write(1, b"done\\n")

    builtins.late = Late()
    """
    run = script(START + script.dedent(body))
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")


def test_closing_and_showing_what_is_left_is_no_mistake(script, driver):
    """As finalizers do, and the ends of with blocks of generators that nobody has finished."""
    source = """
    import sys, cudago as cu

    class Late:
        def __init__(self):
            d = cu.Device()
            s = d.create_stream()
            x = cu.ones(4, stream=s)
            graph = cu.Graph()
            graph.memset(x, 0)
            array = cu.OpaqueArray((4, 4), "f4", stream=s)
            pool = cu.DeviceMemoryResource(d, pool=cu.PoolOptions())
            self.shown = [d]
            self.open = [x, x.buffer, graph, graph.instantiate(), d.create_event(), array, pool]
            self.open += [cu.Texture(x), s]

        def __del__(self, print=print):
            for thing in self.shown + self.open:
                assert "<" in repr(thing)
            for thing in self.open:
                with thing:
                    pass
                thing.close()
            print("closed", flush=True)

    def generator():
        with cu.Device().create_stream() as s:
            yield s

    unfinished = generator()
    next(unfinished)
    sys.modules["late"], sys.modules["unfinished"] = Late(), unfinished
    """
    ended = script(script.dedent(source))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "closed\n", "")
