# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""NumPy, imported when it is first used: it is an optional dependency, and takes long to import.

``from .._numpy import np`` at the top of a module does it. Where it is not installed, the error
says so.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

from ._import_at_exit import imported


class _NumPy:
    def __getattr__(self, name: str) -> Any:
        if not is_installed():
            needed(f"for numpy.{name}")
        value = getattr(imported("numpy"), name)
        setattr(self, name, value)  # the next time it is an attribute like any other
        return value


if TYPE_CHECKING:
    import numpy

    np = numpy  # by assignment, which checkers take for something to import from here
else:
    np = _NumPy()


def is_installed() -> bool:
    """Whether NumPy can be imported."""
    try:
        imported("numpy")
    except ModuleNotFoundError as e:
        if e.name != "numpy":  # it is there, and lacks something
            raise
        return False
    return True


def needed(what: str) -> NoReturn:
    """Raise the error of what NumPy would do, which is not installed."""
    raise ModuleNotFoundError(
        f"cudago needs NumPy {what}, and it is not installed here: pip install numpy", name="numpy"
    )


def is_array(value: object) -> bool:
    """Whether this is an array of NumPy's. Whoever has one has imported it."""
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def is_scalar(value: object) -> bool:
    """Whether this is a scalar of NumPy's."""
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)
