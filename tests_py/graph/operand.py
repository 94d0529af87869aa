# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The numbers that nodes work on."""

from __future__ import annotations

import cudago as cu

N = 16
CONFIG = cu.LaunchConfig(grid=1, block=N)


def numbers(buffer, stream) -> list[int]:
    """Return the numbers in a buffer, or the one number that all are."""
    import numpy as np

    out = np.zeros(N, "i4")
    buffer.copy_to(out, stream=stream)
    stream.sync()
    return out.tolist() if len(set(out.tolist())) > 1 else out.tolist()[0]
