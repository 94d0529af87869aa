# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""An empty graph, and memory for its nodes."""

from __future__ import annotations

import pytest

import cudago as cu

from .counted import Counted
from .operand import N


@pytest.fixture
def a(device, stream):
    """Memory for 16 numbers, all 0."""
    with device.allocate(4 * N, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        yield buffer


@pytest.fixture
def b(device, stream):
    """Memory for 16 more, all 0."""
    with device.allocate(4 * N, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        yield buffer


@pytest.fixture
def graph(device):
    """An empty graph."""
    with cu.Graph(device) as graph:
        yield graph


@pytest.fixture
def counted(kernels):
    """A captured function that adds a number to a buffer, and counts how often it is called."""
    counted = Counted(kernels)
    yield counted
    counted.function.clear()


@pytest.fixture
def axpy():
    """The kernel of an expression."""
    made = cu.elementwise("float x, float y, float a", "float z", "z = a * x + y", name="axpy")
    yield made
    made._kernels.clear()
