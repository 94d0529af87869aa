# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels for the tests of the simulated driver's checks, and memory for them."""

from __future__ import annotations

import pytest

from .kernels import compiled


@pytest.fixture(scope="module")
def planted(device):
    """The kernels without their barriers, with line numbers."""
    return compiled(FORGET=1)


@pytest.fixture(scope="module")
def correct(device):
    """The same kernels with their barriers."""
    return compiled()


@pytest.fixture
def ints(device, stream):
    """Memory for 256 ints, all 0."""
    with device.allocate(1024, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        stream.sync()
        yield buffer
        stream.sync()
