# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""NumPy, imported when it is first used: it is an optional dependency, and takes long to import.

``from .._numpy import np`` at the top of a module does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._late import imported


class _NumPy:
    def __getattr__(self, name: str) -> Any:
        value = getattr(imported("numpy"), name)
        setattr(self, name, value)  # the next time it is an attribute like any other
        return value


if TYPE_CHECKING:
    import numpy

    np = numpy  # by assignment, which checkers take for something to import from here
else:
    np = _NumPy()
