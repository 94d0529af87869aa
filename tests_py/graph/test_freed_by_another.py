# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A thread frees memory of a graph that others are about to use."""

from __future__ import annotations

import pytest

FREES = {"buffer": "memory.free(stream=stream)", "graph": "free.launch(stream)"}


@pytest.mark.parametrize("free", FREES)
def test_memory_of_a_graph_that_is_freed_beside_copies_of_it(driver, script, free):
    """A copy of what is not allocated would end the process."""
    run = script(
        f"""
        import sys, threading
        import cudago as cu
        sys.setswitchinterval(1e-5)
        device = cu.Device()
        stream = device.create_stream()
        other = device.create_stream()
        graph = cu.Graph(device)
        memory = graph.allocate(256).buffer
        step = graph.instantiate()
        frees = cu.Graph(device)
        frees.free(memory)
        free = frees.instantiate()
        over = threading.Event()
        copied, wrong = [0], []

        def copy():
            bytes = bytearray(256)
            while not over.is_set():
                try:
                    memory.copy_to(bytes, stream=other)
                    copied[0] += 1
                except ValueError as e:
                    if "not allocated" not in str(e) and "another thread is freeing" not in str(e):
                        wrong.append(e)
                except BaseException as e:
                    wrong.append(e)
                    raise

        threads = [threading.Thread(target=copy) for _ in range(2)]
        for thread in threads:
            thread.start()
        for n in range(300):
            step.launch(stream)
            stream.sync()
            {FREES[free]}
        step.launch(stream)
        while not copied[0] and not wrong:
            pass
        over.set()
        for thread in threads:
            thread.join()
        assert not wrong, wrong
        memory.free(stream=stream)
        """,
        **({"CUDAGO_SIM": "hostile=1"} if driver == "sim" else {}),
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_a_free_beside_threads_that_use_the_memory_all_the_time(driver, script):
    """It waits for those that are about to use it, and for no others."""
    run = script(
        """
        import threading, time
        import cudago as cu
        device = cu.Device()
        stream = device.create_stream()
        called = device.create_stream()
        graph = cu.Graph(device)
        memory = graph.allocate(4096).buffer
        graph.instantiate().launch(stream)
        stream.sync()
        over = threading.Event()
        used, refused = threading.Event(), []

        def use():
            own = device.create_stream()
            try:
                while True:
                    memory.fill(3, stream=own)
                    used.set()
            except ValueError as e:
                refused.append(e)

        def call():  # while there are callbacks, fills release the GIL
            while not over.is_set():
                called.callback(lambda: time.sleep(0.002))
                time.sleep(0.001)

        *threads, caller = [threading.Thread(target=f, daemon=True) for f in (use, use, use, call)]
        for thread in (*threads, caller):
            thread.start()
        used.wait()
        time.sleep(0.1)
        memory.free(stream=stream)
        for thread in threads:
            thread.join()
        over.set()
        caller.join()
        assert len(refused) == 3, refused
        """,
        **({"CUDAGO_SIM": "hostile=1"} if driver == "sim" else {}),
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_a_callback_frees_memory_that_a_stuck_thread_is_about_to_use(driver, script):
    """To wait for the thread would be to wait for the callback itself."""
    run = script(
        """
        import threading
        import cudago as cu
        device = cu.Device()
        stream, other = device.create_stream(), device.create_stream()
        graph = cu.Graph(device)
        memory = graph.allocate(4096).buffer
        graph.instantiate().launch(stream)
        stream.sync()
        filled, refused = [0], []

        def free():
            before = -1
            while before != filled[0]:  # until the queue is full
                before = filled[0]
                threading.Event().wait(0.2)
            try:
                memory.free(stream=other)
            except ValueError as e:
                refused.append(str(e))

        stream.callback(free)
        for filled[0] in range(3000):
            memory.fill(3, stream=stream)
        stream.sync()
        assert len(refused) == 1 and "cannot be freed in a callback now" in refused[0], refused
        memory.free(stream=stream)
        """,
        **({"CUDAGO_SIM": "hostile=1"} if driver == "sim" else {}),
    )
    assert (run.returncode, run.stderr) == (0, "")
