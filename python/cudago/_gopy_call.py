# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The only way to the cold half of the API, which gopy generates from ``pyext/api``."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

from . import _core
from .errors import _decode

if TYPE_CHECKING:
    from collections.abc import Callable

_Args = TypeVarTuple("_Args")
_T = TypeVar("_T")


def read(call: Callable[[*_Args], _T], *args: *_Args) -> _T:
    """Make a cold call that needs the driver, which is opened if it was not."""
    _core._open()
    return _call(call, *args)


def read_unopened(call: Callable[[], _T]) -> _T:
    """Make a cold call that needs no driver, after dropping the references that wait for that."""
    _core._drain()
    return _call(call)


def _call(call: Callable[[*_Args], _T], *args: *_Args) -> _T:
    """Turn an error text into our exception. The caller has checked that Go may be entered."""
    try:
        return call(*args)
    except RuntimeError as e:
        error = _decode(str(e))
    raise error
