# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A thread that waits for a stream does not invalidate a capture that another one begins."""

from __future__ import annotations

import pytest

WAITS = {
    "sync": "stream.sync()",
    "device": "device.sync()",
    "export": "tensor.__dlpack__()",
    "copy": "tensor.numpy(stream=stream)",
}


def test_a_capture_begins_during_a_wait_for_what_comes_after_it(driver, script):
    run = script(
        """
        import threading
        import cudago as cu
        from cudago.testing import hold
        device = cu.Device()
        stream = device.create_stream()
        memory = device.allocate(256, stream=stream)
        with hold(stream):
            thread = threading.Thread(target=stream.sync)
            thread.start()
            with stream.capture() as graph:
                memory.fill(1, stream=stream)
            graph.close()
        thread.join()
        """
    )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("wait", WAITS)
def test_captures_while_another_thread_waits(driver, script, wait):
    run = script(
        f"""
        import itertools, threading
        import cudago as cu
        device = cu.Device()
        stream = device.create_stream()
        memory = device.allocate(256, stream=stream)
        tensor = memory.view("i4")
        stream.sync()
        done, waited = threading.Event(), [0]

        def look():
            while not done.is_set():
                try:
                    {WAITS[wait]}
                    waited[0] += 1
                except (ValueError, BufferError):
                    pass  # it was capturing

        thread = threading.Thread(target=look)
        thread.start()
        try:
            for captures in itertools.count():
                if captures >= 100 and waited[0]:
                    break
                with stream.capture() as graph:
                    memory.fill(1, stream=stream)
                graph.close()
        finally:
            done.set()
            thread.join()
        """,
        **({"CUDAGO_SIM": "hostile=1"} if driver == "sim" else {}),
    )
    assert (run.returncode, run.stderr) == (0, "")
