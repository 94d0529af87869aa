# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Which checks are on, and where."""

from __future__ import annotations

import sys

import pytest

import cudago as cu

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)


def test_check_covers_its_block_only(device, stream, planted, ints):
    config = cu.LaunchConfig(1, 32)

    def launch():
        cu.launch(stream, config, planted["neighbours"], ints)

    launch()
    with cu.sim.check("uninitialized"):
        launch()
    with cu.sim.check("races", raises=False) as found:
        launch()
        assert found == []
        with cu.sim.check("uninitialized"):
            launch()
        launch()
    assert len(found) == 1 and found[0].startswith("race in shared memory of kernel neighbours")
    launch()
    stream.sync()
    assert cu.sim.reports() == []


def test_check_leaves_other_exceptions_alone(stream, planted, ints):
    with pytest.raises(KeyError, match="mine"), cu.sim.check("races"):
        cu.launch(stream, cu.LaunchConfig(1, 64), planted["reverse"], ints, ints[512:768])
        raise KeyError("mine")
    with pytest.raises(cu.CheckError):
        stream.sync()


def test_functions_that_run_after_their_call_are_refused(driver):
    async def coroutine(): ...

    async def generator():
        yield

    def plain_generator():
        yield

    cases = {
        "an async function": coroutine,
        "an async generator": generator,
        "a generator": plain_generator,
    }
    for what, func in cases.items():
        with pytest.raises(TypeError, match=f"not {what}, which runs only after its call"):
            cu.sim.check()(func)


def test_unknown_checks(device):
    with pytest.raises(ValueError, match='got "leaks"'), cu.sim.check("leaks"):
        pass


def test_run_with_checks_finds_and_fails(script, driver, tmp_path):
    file = tmp_path / "main.py"
    file.write_text(
        "import cudago as cu, sys\n"
        "d = cu.Device(); s = d.create_stream()\n"
        "d.allocate(64, stream=s).copy_to(bytearray(64), stream=s)\n"
        "sys.exit(0)\n"
    )
    command = [sys.executable, "-W", "error", "-m", "cudago", "run", "--driver", "sim", "--check"]
    run = script.run([*command, str(file)])
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("cudago: uninitialized read in a copy of 64 bytes in stream ")
    assert f"allocated at {file}:3 (cuMemAllocAsync)" in run.stderr
    file.write_text("import cudago as cu\ncu.Device().create_stream().sync()\n")
    run = script.run([*command, str(file)])
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
