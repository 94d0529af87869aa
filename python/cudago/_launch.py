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
    """The launch shape. Immutable.

    Parameters
    ----------
    grid : int or tuple of int
        Grid size in blocks, in up to three dimensions.
    block : int or tuple of int
        Block size in threads, in up to three dimensions.
    cluster : int or tuple of int, optional
        Cluster size in blocks; needs compute capability 9.0.
    shared_memory : int
        Dynamic shared memory per block, in bytes.
    cooperative : bool
        Whether all blocks must run at the same time.
    priority : int, optional
        Priority of the launch; by default the stream's.

    Notes
    -----
    Equal if all their values are. Creating one calls no driver; the launch checks the device's
    limits.

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
        """Check the values and create the configuration."""
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
    """Unpickle, with all checks."""
    return LaunchConfig(
        grid,
        block,
        cluster=cluster,
        shared_memory=shared_memory,
        cooperative=cooperative,
        priority=priority,
    )


_core._set_class("LaunchConfig", LaunchConfig)
