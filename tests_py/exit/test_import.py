# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""`import cudago` does nothing but define names."""

from __future__ import annotations


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
