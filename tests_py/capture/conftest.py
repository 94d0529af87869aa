# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What several tests of captures use."""

from __future__ import annotations

import pytest


@pytest.fixture
def other(device):
    """Another stream."""
    with device.create_stream() as other:
        yield other
