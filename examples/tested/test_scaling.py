# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Its tests."""

import numpy as np
import pytest
from scaling import scale

import cudago as cu


@pytest.mark.parametrize("n", [1, 255, 256, 1000])
def test_every_element_is_scaled(n, cu_stream):
    x = cu.asarray(np.arange(n, dtype="f4"), stream=cu_stream)
    scale(x, 3.0, cu_stream)
    assert (x.numpy(stream=cu_stream) == 3 * np.arange(n)).all()


def test_nothing_is_left_behind(cu_stream, cu_no_leaks):
    for _ in range(3):
        scale(cu.full(8, 1.0, "f4", stream=cu_stream), 2.0, cu_stream)


@pytest.mark.gpu
def test_a_large_one(cu_stream):
    x = cu.full(1 << 26, 1.0, "f4", stream=cu_stream)
    scale(x, 2.0, cu_stream)
    assert x.numpy(stream=cu_stream).sum() == 1 << 27
