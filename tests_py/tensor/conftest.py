# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A tensor with numbers."""

from __future__ import annotations

import pytest

import cudago as cu


@pytest.fixture
def counted(stream):
    """4 x 8 int32, 0 to 31, on the device."""
    np = pytest.importorskip("numpy")
    t = cu.asarray(np.arange(32, dtype="i4").reshape(4, 8), stream=stream)
    yield t
    t.close()
