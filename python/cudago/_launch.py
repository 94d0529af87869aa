# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Launching kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _core
from ._core import launch

if TYPE_CHECKING:
    from .typing import Dims

__all__ = ["LaunchConfig", "launch"]


class LaunchConfig(_core.LaunchConfig):
    """The shape of a launch. Immutable.

    Parameters
    ----------
    grid : int or tuple of int
        Blocks, in up to three dimensions.
    block : int or tuple of int
        Threads of a block, in up to three dimensions.
    cluster : int or tuple of int, optional
        Blocks of a cluster; needs compute capability 9.0.
    shared_memory : int
        Dynamic shared memory of a block, in bytes.
    cooperative : bool
        Whether all blocks must run at the same time.
    priority : int, optional
        Priority of the launch; by default the stream's.

    Raises
    ------
    ValueError
        If a number is out of range. The device's own limits are checked at the launch.
    TypeError
        If a number is no int.

    Notes
    -----
    Two are equal if all their numbers are. Making one calls no driver.

    Examples
    --------
    >>> cudago.LaunchConfig(grid=(2, 3), block=64)
    LaunchConfig(grid=(2, 3, 1), block=(64, 1, 1))
    """

    __slots__ = ()

    def __new__(
        cls,
        grid: Dims,
        block: Dims,
        *,
        cluster: Dims | None = None,
        shared_memory: int = 0,
        cooperative: bool = False,
        priority: int | None = None,
    ) -> LaunchConfig:
        """Check and make the shape."""
        made: LaunchConfig = _core._config_new(
            cls, grid, block, cluster, shared_memory, cooperative, priority
        )
        return made

    def _key(self) -> tuple[object, ...]:
        return (
            self.grid,
            self.block,
            self.cluster,
            self.shared_memory,
            self.cooperative,
            self.priority,
        )

    def __reduce__(self) -> tuple[object, ...]:
        return _remake, self._key()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LaunchConfig) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        text = f"LaunchConfig(grid={self.grid}, block={self.block}"
        for name in ("cluster", "shared_memory", "cooperative", "priority"):
            if value := getattr(self, name):
                text += f", {name}={value}"
        return text + ")"


def _remake(
    grid: Dims,
    block: Dims,
    cluster: Dims | None,
    shared_memory: int,
    cooperative: bool,
    priority: int | None,
) -> LaunchConfig:
    """Make what was pickled again, with all checks."""
    return LaunchConfig(
        grid,
        block,
        cluster=cluster,
        shared_memory=shared_memory,
        cooperative=cooperative,
        priority=priority,
    )


_core._set_class("LaunchConfig", LaunchConfig)
