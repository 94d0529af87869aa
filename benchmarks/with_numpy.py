# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The operations with NumPy, which needs no GPU: exchange with itself, and views."""

from __future__ import annotations

from typing import Any

import numpy as np
import operations as op
from measure import Case, python_case

LIBRARY = "NumPy"


def cases() -> list[Case]:
    """Return a case for each operation that NumPy has."""
    names: dict[str, Any] = {"np": np, "a": np.zeros(op.COPY_SIZE, "u1")}

    def case(operation: str, statement: str) -> Case:
        return python_case(operation, LIBRARY, statement, names, lambda: None)

    return [
        case(op.CAPSULE, "a.__dlpack__(max_version=(1, 0))"),
        case(op.TO_NUMPY, "np.from_dlpack(a)"),
        case(op.SLICE, "a[16:32]"),
    ]
