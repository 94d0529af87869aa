# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Variables of the environment that are meant for another program in Go are left alone."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)

WORK = """
import os, subprocess
before = dict(os.environ)
import cudago as cu
s = cu.Device().create_stream()
for _ in range(20):
    b = cu.Device().allocate(1 << 20, stream=s)
    b.copy_from(bytes(1 << 20), stream=s)
s.sync()
assert os.environ == before
seen = subprocess.run(["/usr/bin/env"], capture_output=True, text=True, check=True).stdout
lines = set(seen.splitlines())
assert {f"{k}={v}" for k, v in before.items() if k.startswith("GO")} <= lines
assert "CUDAGO_HIDES" not in seen
"""


@pytest.mark.parametrize(
    "variable",
    [
        "GOMEMLIMIT=2GB",  # the runtime wants 2GiB, and ends the process
        "GODEBUG=cgocheck=2",  # likewise: a build option by now
        "GODEBUG=gctrace=1,inittrace=1",
        "GODEBUG=sbrk=1",
        "GOMEMLIMIT=1",
        "GOGC=off",
        "GOMAXPROCS=1",
        "GODEBUGGER=x",  # none of Go's
    ],
)
def test_they_change_nothing(script, driver, variable):
    name, value = variable.split("=", 1)
    run = script(WORK, **{name: value})
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_all_at_once_and_before_others(script, driver):
    """Those that were put into the environment since the process began too."""
    run = script(
        """
        import os
        os.environ["GOGC"] = "nonsense"
        os.environ["GOMEMLIMIT"] = "nonsense"
        os.environ["A_NEW_ONE"] = "1"
        del os.environ["GODEBUG"]
        """
        + WORK.replace("\n", "\n        "),
        GODEBUG="cgocheck=2",
        GOMEMLIMIT="2GB",
        GOMAXPROCS="nonsense",
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_the_simulated_device_uses_all_processors(script, driver):
    run = script(
        """
        import os
        import cudago as cu
        cu.Device(0).create_stream().sync()
        threads = len(os.listdir("/proc/self/task"))
        assert threads >= len(os.sched_getaffinity(0)) + 4, threads
        """,
        GOMAXPROCS="1",
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
