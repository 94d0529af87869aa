# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The numbers that nodes work on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cudago as cu

if TYPE_CHECKING:
    import numpy as np

N = 16
CONFIG = cu.LaunchConfig(grid=1, block=N)


def full(value: int) -> np.ndarray:
    """Return host memory with one number throughout."""
    import numpy as np

    return np.full(N, value, "i4")


def numbers(buffer, stream) -> list[int] | int:
    """Return the numbers in a buffer, or the one number that all are."""
    import numpy as np

    out = np.zeros(N, "i4")
    buffer.copy_to(out, stream=stream)
    stream.sync()
    found = out.tolist()
    return found if len(set(found)) > 1 else found[0]
