# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What is particular to graphs inside nodes: bodies, and views of embedded graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import ClosedError

if TYPE_CHECKING:
    from typing import Never, Self

__all__: list[str] = []


class Inside:
    """The part of `Graph` that knows of graphs inside nodes."""

    __slots__ = ()

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, or was inside a node that is not there any more."""
        graph: Any = self
        closed: bool = graph._is_closed
        if closed or not graph._body_id:
            return closed
        try:
            graph._count()
        except ClosedError:
            return True
        return False

    def __call__(self, *args: Never, **kwargs: Never) -> Self:
        """Return the graph itself, if it is inside a node: ``node.body()`` is ``node.body``."""
        graph: Any = self
        if not graph._body_id:
            raise TypeError("a Graph cannot be called: instantiate it, and launch the executable")
        if args or kwargs:
            raise TypeError(
                "a graph inside a node is called without arguments, which returns it: to run it, "
                "instantiate the outermost graph, and launch the executable"
            )
        return self
