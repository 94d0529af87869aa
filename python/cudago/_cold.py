# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The one way to the cold half of the API, which gopy makes of ``pyext/api``."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

from . import _core
from .errors import _decode

if TYPE_CHECKING:
    from collections.abc import Callable

_Args = TypeVarTuple("_Args")
_T = TypeVar("_T")


def read(call: Callable[[*_Args], _T], *args: *_Args) -> _T:
    """Ask for a fact, of the driver: it is opened if nobody did."""
    _core._open()
    return _asked(call, *args)


def read_unopened(call: Callable[[], _T]) -> _T:
    """Ask for a fact that needs no driver, after what waits to be released was."""
    _core._drain()
    return _asked(call)


def _asked(call: Callable[[*_Args], _T], *args: *_Args) -> _T:
    """Turn the text of an error into ours. Go may be entered: the caller has asked `_core`."""
    try:
        return call(*args)
    except RuntimeError as e:
        error = _decode(str(e))
    raise error
