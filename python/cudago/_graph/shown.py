# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""How a graph is shown: as text, as a picture, in Graphviz's language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._card import card, picture
from .._import_at_exit import late
from .._native import number_text, or_closed, unnamed, whole
from ..errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__: list[str] = []


def boxes(fold: int | None) -> int | None:
    """Check how many boxes a picture may have."""
    if fold is None:
        return None
    fold = whole(fold, "fold")
    if fold < 1:
        raise ValueError(f"fold must be 1 or more, or None, got {number_text(fold)}")
    return fold


@unnamed
class Shown:
    """The part of `Graph` that shows it."""

    __slots__ = ()

    if TYPE_CHECKING:
        _dot: Callable[[], str]
        _nodes: Callable[[], tuple[tuple[int, int, str, str], ...]]
        _count: Callable[[], int]

    def to_dot(self) -> str:
        """Return the graph in Graphviz's language.

        Returns
        -------
        str
            Nodes with their names, kinds, sizes and operands, and `Node.made_at` as a tooltip.
            Characters that cannot be printed are replaced.
        """
        return self._dot()

    def to_svg(self, *, fold: int | None = 100) -> str:
        """Return a picture of the graph, as notebooks show it.

        Parameters
        ----------
        fold : int, optional
            Number of boxes above which nodes are folded: a box then stands for several nodes, and
            says of which kinds. None draws each node.

        Returns
        -------
        str
            SVG, with the nodes in layers from top to bottom, and graphs inside nodes in their box.
            The title of a box, which browsers show under the pointer, is `Node.made_at`. Of graphs
            that are nested deeper than 64 levels only the number of nodes is given.
        """
        most = boxes(fold)
        with late:
            from .._display.picture import svg

        return svg(self.to_dot(), most)

    def _ipython_key_completions_(self) -> list[str]:
        """Complete ``graph["`` in notebooks; no names while the graph cannot be read."""
        try:
            return [name for _, _, name, _ in self._nodes()]
        except ValueError:  # closed, or being captured
            return []

    _repr_html_ = card
    _repr_svg_ = picture

    def __str__(self) -> str:
        try:
            dot = self.to_dot()
        except ValueError:  # closed, or being captured
            return repr(self)
        with late:
            from .._display.tree import tree

        return tree(repr(self), dot)

    @or_closed
    def __repr__(self) -> str:
        try:
            return f"<cudago.Graph of {self._count()} nodes>"
        except ClosedError:
            return "<cudago.Graph: closed>"
        except ValueError:
            return "<cudago.Graph: capturing>"
