# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Python's half of a native class, in the class itself."""

from __future__ import annotations

from typing import Any, TypeVar, cast

_T = TypeVar("_T")


def into_native(cls: type[_T]) -> type[_T]:
    """Move a subclass's members into the native type, and return that type.

    Instances of a Python subclass take part in garbage collection, which would double the cost of
    creating a tensor or a view of a buffer. Both hold nothing that the collector needs to see. And
    a call of an instance looks up ``__call__``, which costs as much as what a bound launch does.
    """
    native: Any = cls.__base__
    for name, member in vars(cls).items():
        if name not in ("__dict__", "__module__", "__slots__", "__weakref__"):
            setattr(native, name, member)
    return cast("type[_T]", native)
