# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The families, and what they give on the driver in use.

Inputs depend on nothing but this package, so that drivers can be compared.
"""

from __future__ import annotations

import numpy as np

import cudago as cu

from . import conversions, floats, integers, matrices, programs, scalar, warps
from .case import Case

SCALAR = {"integers": integers, "floats": floats, "conversions": conversions}
WHOLE = {"warps": warps, "matrices": matrices, "programs": programs}
FAMILIES = (*SCALAR, *WHOLE)


def cases_of(family: str) -> list[Case]:
    """Return the cases of a family of instructions on elements."""
    return list(SCALAR[family].cases())


def results(family: str, stream: cu.Stream) -> dict[str, np.ndarray]:
    """Return name and result of each case of a family."""
    major, minor = stream.device.compute_capability
    capability = 10 * major + minor
    if family in SCALAR:
        return dict(scalar.run(cases_of(family), stream, capability))
    return dict(WHOLE[family].results(stream, capability))


def approximations(family: str) -> set[str]:
    """Return the cases of a family that need not agree in each bit."""
    if family not in SCALAR:
        return set()
    return {c.name for c in cases_of(family) if c.tolerance is not None}
