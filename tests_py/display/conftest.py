# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A graph and memory to show."""

from __future__ import annotations

import pytest

import cudago as cu


@pytest.fixture
def graph(device):
    """An empty graph."""
    with cu.Graph(device) as graph:
        yield graph


@pytest.fixture
def a(device, stream):
    """64 bytes of device memory, zero."""
    with device.allocate(64, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        stream.sync()
        yield buffer
