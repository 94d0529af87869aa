# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""`import cudago` does nothing but define names."""

from __future__ import annotations

import pytest


def test_import_touches_no_driver(script):
    run = script(
        """
        import os, signal, sys, threading, logging
        from pathlib import Path

        def state():
            return dict(os.environ), signal.getsignal(signal.SIGINT), sys.excepthook

        before = state()
        import cudago as cu
        assert state() == before
        assert not cu._core._is_open()
        maps = Path("/proc/self/maps").read_text()
        assert "libcuda" not in maps and "nvrtc" not in maps, maps
        assert threading.active_count() == 1
        assert not logging.getLogger("cudago").handlers
        assert cu.live_objects() == {}
        assert "numpy" not in sys.modules and "torch" not in sys.modules
        """,
        CUDAGO_DRIVER="nvidia",
        CUDAGO_LIBCUDA="/nowhere/libcuda.so",
        CUDAGO_SIM="nonsense",
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_things_that_need_no_driver(script):
    run = script(
        """
        import cudago as cu
        cu.LaunchConfig(grid=1, block=1)
        cu.Program("source")
        cu.ProgramOptions(arch="sm_90")
        cu.PoolOptions()
        class Thing: ...
        thing = Thing()
        cu.finalize(thing, print).detach()
        repr(cu.Program("source"))
        assert not cu._core._is_open()
        """,
        CUDAGO_DRIVER="nvidia",
        CUDAGO_LIBCUDA="/nowhere/libcuda.so",
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_the_first_launch_loads_no_more_of_python(script, driver):
    """What importing pathlib and logging takes is a process's time to its first launch."""
    run = script(
        """
        import sys
        import cudago as cu
        before = set(sys.modules)
        device = cu.Device()
        stream = device.create_stream()
        ptx = ".version 6.0 .target sm_50 .address_size 64 .entry k(.param .u64 x) { ret; }"
        kernel = cu.ObjectCode.from_ptx(ptx).get_kernel("k")
        memory = device.allocate(64, stream=stream)
        cu.launch(stream, cu.LaunchConfig(1, 32), kernel, memory)
        stream.sync()
        loaded = {name for name in set(sys.modules) - before if not name.startswith("cudago")}
        print(sorted(loaded - {"importlib.util", "importlib._abc"}))
        """,
        CUDAGO_DRIVER=driver,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "[]\n", "")


@pytest.mark.parametrize(
    "prelude, stderr",
    [
        ("", "cudago: {}\n"),
        ("import logging", "cudago: {}\n"),
        ("import logging; logging.basicConfig()", "WARNING:cudago:{}\n"),
        ("import logging; logging.getLogger('cudago').setLevel('ERROR')", ""),
    ],
)
def test_a_notice_goes_where_the_program_listens(script, prelude, stderr):
    """Why the simulated driver was chosen; a program without logging has chosen no place."""
    run = script(
        f"{prelude}\nimport cudago as cu\ncu.init()\nprint(cu.driver_name())\n"
        "print(cu._driver._notice())",
        CUDAGO_DRIVER="auto",
        CUDAGO_LIBCUDA="/nowhere/libcuda.so",
    )
    name, notice = run.stdout.splitlines()
    assert name == "sim"
    assert "/nowhere/libcuda.so" in notice
    assert run.stderr == stderr.format(notice)


def test_many_threads_import_at_once(script):
    run = script(
        """
        import threading
        def work():
            import cudago
            cudago.live_objects()
        threads = [threading.Thread(target=work) for _ in range(50)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        """
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_many_threads_open_the_driver_at_once(script, driver):
    run = script(
        """
        import threading
        import cudago as cu
        seen = []
        def work():
            with cu.Device().create_stream() as s:
                s.sync()
            seen.append((cu.Device(), cu.driver_name()))
        threads = [threading.Thread(target=work) for _ in range(20)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(seen) == 20 and len(set(seen)) == 1
        """
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_subinterpreters_are_refused(script):
    run = script(
        """
        import sys
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            import _interpreters as interpreters
        import cudago
        other = interpreters.create()
        code = "try:\\n import cudago\\nexcept ImportError:\\n pass\\nelse:\\n raise SystemError"
        failed = interpreters.run_string(other, f"import sys; sys.path[:] = {sys.path!r}\\n" + code)
        assert failed is None, failed
        interpreters.destroy(other)
        """
    )
    assert (run.returncode, run.stderr) == (0, "")


INTERPRETERS = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

def elsewhere():
    # One with the GIL of the main one; others refuse modules like ours by themselves.
    source = "import cudago"
    if hasattr(interpreters, "exec"):
        other = interpreters.create("legacy")
        failed = interpreters.exec(other, source)
        text = failed.formatted if failed else "it was imported"
    else:
        other = interpreters.create(**({"isolated": False} if sys.version_info < (3, 13) else {}))
        try:
            interpreters.run_string(other, source)
            text = "it was imported"
        except interpreters.RunFailedError as e:
            text = str(e)
    interpreters.destroy(other)
    return text
"""

USE = """
import cudago as cu
with cu.Device().create_stream() as s:
    buffer = cu.Device().allocate(4, stream=s)
    buffer.fill(7, stream=s)
    out = bytearray(4)
    buffer.copy_to(out, stream=s)
    s.sync()
    print(out[0], type(buffer) is cu.Buffer)
"""


@pytest.mark.parametrize("first", ["elsewhere", "here"])
def test_only_the_main_interpreter_has_it(first, script, driver):
    refused = "print('cudago works in the main interpreter only' in elsewhere())\n"
    parts = [refused + refused, USE] if first == "elsewhere" else [USE, refused + refused]
    run = script(INTERPRETERS + "".join(parts))
    assert (run.returncode, run.stderr) == (0, "")
    assert sorted(run.stdout.splitlines()) == ["7 True", "True", "True"]


def test_a_second_import_says_so(script):
    """The native module goes on with the classes of the first one."""
    run = script(
        """
        import sys, cudago

        first = cudago
        for name in [n for n in sys.modules if n.split(".")[0] == "cudago"]:
            del sys.modules[name]
        for _ in range(2):
            try:
                import cudago
            except ImportError as e:
                print(str(e).split(":")[0])
        print(first.LaunchConfig(1, 1).grid)  # the first one goes on
        """
    )
    said = "cudago cannot be imported twice in one process\n"
    assert (run.returncode, run.stdout, run.stderr) == (0, 2 * said + "(1, 1, 1)\n", "")
