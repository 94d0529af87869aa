# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Faults that stop a kernel."""

from __future__ import annotations

import threading

import pytest

import cudago as cu

from .kernels import SOURCE, line_of

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)


FAULTS = {
    "out of bounds": (
        'cu.launch(s, one, code["set"], buffer, 16, 1)',
        "illegal address in kernel set, block (0,0,0), thread (0,0,0), /planted.cu:{set}, PTX line",
        "0 bytes past the end of device memory of 64 bytes at 0x",
        "allocated at {script}:9 (cuMemAllocAsync) (buffer ",
        "parameter 0 (set_param_0) points to it",
    ),
    "use after free": (
        'p = int(buffer.ptr); buffer.close(); cu.launch(s, one, code["set"], p, 3, 1)',
        "illegal address in kernel set",
        "at offset 12 of freed device memory of 64 bytes",
        "allocated at {script}:9 (cuMemAllocAsync)",
        "freed at {script}:10 (cuMemFreeAsync)",
    ),
    "misaligned": (
        'cu.launch(s, one, code["odd"], buffer)',
        "misaligned address in kernel odd",
        "/planted.cu:{odd}",
        "at offset 1 of device memory of 64 bytes",
    ),
    "barrier": (
        'cu.launch(s, cu.LaunchConfig(1, 32), code["apart"], buffer)',
        "deadlock in kernel apart",
        "warp 0 lanes 0-15 wait at /planted.cu:{apart}, PTX line ",
        "barrier 0, where 16 of 32 threads have arrived",
        "warp 0 lanes 16-31 wait at",
        "barrier 1, where 16 of 32 threads have arrived",
    ),
    "endless": (
        'cu.launch(s, one, code["spin"], buffer)',
        "step budget exhausted in kernel spin",
        "/planted.cu:{spin}",
        "more than 100000 loop iterations",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(script, driver, name):
    statement, *facts = FAULTS[name]
    run = script(
        f"""
        import cudago as cu
        d = cu.Device()
        s = d.create_stream()
        source = {SOURCE!r}
        options = cu.ProgramOptions(lineinfo=True, name="/planted.cu")
        code = cu.Program(source, "c++", options=options).compile()
        one = cu.LaunchConfig(1, 1)
        buffer = d.allocate(64, stream=s); buffer.fill(0, stream=s)
        {statement}
        try:
            s.sync()
        except cu.DeviceFaultError as e:
            print(e)
        """,
        CUDAGO_SIM="check=full,steps=1e5",
    )
    assert (run.returncode, run.stderr) == (0, "")
    places = {
        "script": str(script.directory / "script.py"),
        "set": line_of("p[i] = value"), "odd": line_of("*(int*)"),
        "apart": line_of('"bar.sync 0;"'), "spin": line_of("!= 77"),
    }  # fmt: skip
    for fact in facts:
        assert fact.format(**places) in run.stdout


def test_cancel(device, stream, correct, ints):
    cu.launch(stream, cu.LaunchConfig(1, 1), correct["spin"], ints)
    canceler = threading.Timer(0.05, cu.sim.cancel)
    canceler.start()
    with pytest.raises(cu.CheckError, match="canceled in kernel spin"):
        stream.sync()
    canceler.join()
    cu.launch(stream, cu.LaunchConfig(1, 32), correct["increment"], ints)
