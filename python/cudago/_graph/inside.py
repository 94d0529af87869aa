# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What is particular to graphs inside nodes: bodies, and views of embedded graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

__all__: list[str] = []


class Inside:
    """The part of `Graph` that knows of graphs inside nodes."""

    __slots__ = ()

    if TYPE_CHECKING:
        _body_id: int
        _is_closed: bool
        _count: Callable[[], int]

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, or was inside a node that is not there any more."""
        if self._is_closed or not self._body_id:
            return self._is_closed
        try:
            self._count()
        except ClosedError:
            return True
        return False

    def __call__(self) -> Self:
        """Return the graph itself, if it is inside a node: ``node.body()`` is ``node.body``."""
        if not self._body_id:
            raise TypeError("a Graph cannot be called: instantiate it, and launch the executable")
        return self
