# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""How long what other processes share is there: handles, and what a process that dies had."""

from __future__ import annotations

import pytest

import cudago as cu  # noqa: F401


def test_a_pool_beside_its_handle(two):
    assert two(
        """
        def child(pipe, pool, handle):
            with cu.DeviceMemoryResource.from_allocation_handle(cu.Device(), handle) as other:
                print(pool.is_closed, other.is_closed, handle.is_closed, flush=True)
            pipe.send("imported")

        def parent():
            device, stream, pool, buffer = shared()
            process, pipe = main(child, pool, pool.get_allocation_handle())
            pipe.recv()
            process.join()
            print(process.exitcode)
        """
    ) == ["False False False", "0"]


def test_an_importer_that_has_forked_and_dies(two):
    """Its forked child must not keep what it had imported."""
    assert two(
        """
        def child(pipe, buffer):
            forked = os.fork()
            if not forked:
                os.close(pipe.fileno())
                time.sleep(60)
                os._exit(0)
            pipe.send(forked)
            pipe.recv()
            os.kill(os.getpid(), signal.SIGKILL)

        def parent():
            device, stream, pool, buffer = shared()
            process, pipe = main(child, buffer)
            forked = pipe.recv()
            buffer.close()
            settle()
            print(pool.statistics.used > 0)
            pipe.send("die")
            process.join()
            settle()
            stream.sync()
            print(process.exitcode, pool.statistics.used)
            os.kill(forked, signal.SIGKILL)
        """
    ) == ["True", "-9 0"]


@pytest.mark.skipif("cu.driver_name() != 'sim'", reason="with NVIDIA's driver undefined")
@pytest.mark.parametrize(
    ("end", "text"),
    [
        ("stream.sync()", ": the work that process N recorded it behind has failed"),
        ("device.reset()", ": the work that process N recorded it behind has failed"),
        ("os.kill(os.getpid(), signal.SIGKILL)", " cannot end: process N, which recorded it"),
        ("os._exit(0)", " cannot end: process N, which recorded it"),
    ],
)
def test_an_event_whose_work_does_not_end_well(two_processes, end, text):
    """The parent, which waits, has not taken notice of the child's end."""
    lines = two_processes(
        f"""
        import contextlib, re, threading
        BAD = ".version 7.0\\n.target sm_50\\n.address_size 64\\n"
        BAD += ".entry bad() {{ .reg .b64 %p; mov.u64 %p, 16; st.global.u32 [%p], 1; ret; }}"

        def child(pipe):
            device = cu.Device()
            stream = device.create_stream()
            event = device.create_event(ipc_enabled=True)
            held = threading.Event()
            stream.callback(held.wait)
            cu.launch(stream, cu.LaunchConfig(1, 1), cu.ObjectCode.from_ptx(BAD)["bad"])
            stream.record(event)
            pipe.send(event)
            pipe.recv()
            if "os." not in {end!r}:
                threading.Timer(0.2, held.set).start()
            with contextlib.suppress(cu.DeviceFaultError):
                {end}
            pipe.recv()

        def parent():
            process, pipe = main(child)
            event = pipe.recv()
            pipe.send("go on")
            try:
                print("done", event.sync())
            except cu.DeviceFaultError as e:
                print(re.sub("process [0-9]+", "process N", str(e)))
            with contextlib.suppress(BrokenPipeError):
                pipe.send("end")
            process.join()
        """
    )
    assert len(lines) == 1 and text in lines[0], lines
