# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Python's half of a native class: in the class itself, and not to be subclassed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

_T = TypeVar("_T")

if TYPE_CHECKING:
    from typing import final as final
else:

    def final(cls: type[_T]) -> type[_T]:
        """Refuse subclasses: calls that make objects would make none of them."""

        def refuse(subclass: type[_T], **kwargs: Any) -> None:
            raise TypeError(
                f"cudago.{cls.__name__} cannot be subclassed: cudago makes objects of the class "
                "itself, so keep one in an attribute"
            )

        cls.__init_subclass__ = classmethod(refuse)
        cls.__final__ = True  # as typing.final
        return cls


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
