# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Our own tensors are placed elsewhere behind the work that is queued for them."""

from __future__ import annotations

import cudago as cu


def test_a_copy_to_the_host_comes_after_the_work(device):
    for value in range(1, 30):
        with device.create_stream() as other, cu.empty(1 << 20, "u1", stream=other) as t:
            t.fill(0, stream=other)
            t.fill(value, stream=other)
            placed = cu.from_dlpack(t, device="cpu")
            assert bytes(memoryview(placed)) == bytes([value]) * (1 << 20)
