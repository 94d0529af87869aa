# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Correct kernels and programs, in which the checks find nothing."""

from __future__ import annotations

import numpy as np
import pytest

import cudago as cu

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)


def test_correct_kernels_are_clean(device, stream, correct, ints):
    with cu.sim.check():
        for name in ("reverse", "count"):
            cu.launch(stream, cu.LaunchConfig(1, 64), correct[name], ints, ints[512:768])
        cu.launch(stream, cu.LaunchConfig(1, 32), correct["neighbours"], ints)
        cu.launch(stream, cu.LaunchConfig(1, 32), correct["increment"], ints)


def test_a_correct_program_is_clean(device, stream, correct):
    """Uploads, kernels, a graph and downloads, on two streams, under every check."""
    n = 4096
    config = cu.LaunchConfig(1, 64)
    with cu.sim.check(), device.create_stream() as other:
        x = cu.asarray(np.arange(n, dtype="f4"), stream=stream)
        y = cu.zeros(n, "f4", stream=other)
        other.wait(stream.record())
        cu.launch(other, config, correct["reverse"], y, x)
        with cu.Graph() as graph:
            up = graph.memcpy(x.buffer, np.ones(n, "f4"), name="upload")
            up.memset(y.buffer, 0, name="clear").launch(config, correct["reverse"], y, x)
            with graph.instantiate() as step:
                for _ in range(3):
                    step.launch(other)
        assert y.numpy(stream=other)[:65].tolist() == [1.0] * 64 + [0.0]
        stream.wait(other.record())
        x.copy_from(y, stream=stream)
        assert x.numpy(stream=stream).sum() == 64
