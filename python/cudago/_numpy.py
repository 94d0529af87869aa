# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""NumPy, imported when it is first used: it is an optional dependency, and takes long to import.

``from .._numpy import np`` at the top of a module does it. An import statement in a function would
fail with an ImportError where it runs while the interpreter is ending, as in a ``__del__``, and
hide the ClosedError that every other call raises there.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import _core


def imported(name: str) -> Any:
    """Return a module; ClosedError if it cannot be imported because the interpreter is ending."""
    try:
        return import_module(name)
    except ImportError:
        _core._check_usable()
        raise


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
