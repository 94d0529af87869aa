# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""First use by several threads at once."""

from __future__ import annotations

import pytest

# Another thread opens a driver while this one is about to.
MEANWHILE = """
import threading
import cudago as cu
from cudago import _driver

options, failed = _driver._options, []
def meanwhile():
    try:
        OTHER
    except Exception as e:
        failed.append(f"other: {e}")
def slow_options():
    _driver._options = options
    own = options()
    other = threading.Thread(target=meanwhile)
    other.start()
    other.join()
    return own
_driver._options = slow_options
try:
    cu.init("nvidia")
except (RuntimeError, cu.DriverNotFoundError) as e:
    failed.append(str(e))
print(*failed, sep="; ")
print(cu.driver_name())
"""


@pytest.mark.parametrize("other", ["cu.init('sim')", "cu.Device()"])
def test_another_thread_opens_another_driver_meanwhile(other, script):
    run = script(MEANWHILE.replace("OTHER", other), CUDAGO_DRIVER="sim")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [
        "the process already uses the driver 'sim'; choose 'nvidia' before first use",
        "sim",
    ]


def test_a_choice_that_fails_is_forgotten(script):
    run = script(
        """
        import cudago as cu
        for attempt in range(2):
            try:
                cu.init("nvidia")
            except cu.DriverNotFoundError:
                print("not found")
        print(cu.Device().name)
        """,
        CUDAGO_DRIVER="sim",
        CUDAGO_LIBCUDA="/nowhere/libcuda.so.1",
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines()[:2] == ["not found"] * 2
    assert "simulated" in run.stdout


@pytest.mark.parametrize("imported", ["import cudago as cu", ""])
def test_many_threads_at_once(imported, script, driver):
    run = script(
        f"""
        import threading
        {imported}
        COUNT = 16
        together, devices = threading.Barrier(COUNT), []
        def work(number):
            together.wait()
            import cudago as cu
            with cu.Device().create_stream() as s, cu.Device().allocate(4, stream=s) as buffer:
                out = bytearray(4)
                buffer.fill(number, stream=s)
                buffer.copy_to(out, stream=s)
                s.sync()
                assert out == bytes([number] * 4)
            devices.append(cu.Device())
        threads = [threading.Thread(target=work, args=(n,)) for n in range(COUNT)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(len(devices), len(set(map(id, devices))))
        """
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "16 1\n", "")
