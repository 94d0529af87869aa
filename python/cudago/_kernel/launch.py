# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Launching kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex

from .. import _core
from .._core import launch
from .._native import number_text, whole
from .._ordinal import device_or_first

if TYPE_CHECKING:
    from .._memory.device import Device
    from .._stream.event import Event
    from ..typing import Dims
    from .kernel import Kernel

__all__ = ["LaunchConfig", "launch"]

_SHOWN = (
    "cluster",
    "shared_memory",
    "cooperative",
    "priority",
    "programmatic",
    "programmatic_event",
    "trigger_at_block_start",
    "launch_completion_event",
)


class LaunchConfig(_core.LaunchConfig):
    """The launch shape. Immutable.

    Parameters
    ----------
    grid : int or tuple of int
        Grid size in blocks, in up to three dimensions.
    block : int or tuple of int
        Block size in threads, in up to three dimensions.
    cluster : int or tuple of int, optional
        Cluster size in blocks; needs compute capability 9.0. `grid` counts blocks, not clusters,
        with it too, and must be a multiple of it in each dimension.
    shared_memory : int
        Dynamic shared memory per block, in bytes.
    cooperative : bool
        Whether all blocks must run at the same time.
    priority : int, optional
        Priority of the launch; by default the stream's.
    programmatic : bool
        Whether the kernel may start before the kernel in front of it has ended; needs compute
        capability 9.0.
    programmatic_event : Event, optional
        Event that each launch records: it completes once all blocks have executed
        ``cudaTriggerProgrammaticLaunchCompletion()`` or ended. Needs compute capability 9.0.
    trigger_at_block_start : bool
        Whether each block triggers `programmatic_event` when it begins.
    launch_completion_event : Event, optional
        Event that each launch records: it completes once all blocks have begun.

    Raises
    ------
    ValueError
        If an event has ``timing_enabled``, is shared with other processes, or is given twice; or if
        there is no event to trigger.

    Notes
    -----
    Equal if all their values are. Creating one calls no driver; the launch checks the device's
    limits, and whether the events are open and of its device.

    A *programmatic* launch overlaps the start of a kernel with the end of the previous kernel on
    the stream. It may start once all blocks of that kernel have executed
    ``cudaTriggerProgrammaticLaunchCompletion()`` or ended, and must itself execute
    ``cudaGridDependencySynchronize()`` before it uses what that kernel writes (in PTX,
    ``griddepcontrol.launch_dependents`` and ``griddepcontrol.wait``). In a capture such a launch
    makes a programmatic edge, and so does adding a kernel node behind another: see
    `Graph.add_edge`. The simulated driver starts the kernel after the previous one, which is always
    allowed.

    The events extend this to other streams: what waits for one (`Stream.wait`) may start before the
    kernel that records it has ended. A kernel behind a programmatic event has to execute
    ``cudaGridDependencySynchronize()`` before it uses what that kernel writes; behind a launch
    completion event nothing makes that visible. Both are best effort: they can complete as late as
    with the kernel, and do so on the simulated driver. An event may be closed at any time: it stays
    in the driver until the launch has ended. In a capture it stands for a place in the graph, as a
    recorded event does, and a kernel that waits for it gets an edge of that kind. The node has no
    event: so its configuration (`Node.params`) has none, and none can be given to nodes that are
    added to graphs, updated or bound.

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
        programmatic: bool = False,
        programmatic_event: Event | None = None,
        trigger_at_block_start: bool = False,
        launch_completion_event: Event | None = None,
    ) -> LaunchConfig:
        """Check the values and create the configuration."""
        made: LaunchConfig = _core._config_new(
            cls,
            grid,
            block,
            cluster,
            shared_memory,
            cooperative,
            priority,
            programmatic,
            programmatic_event,
            trigger_at_block_start,
            launch_completion_event,
        )
        return made

    @classmethod
    def for_elements(
        cls,
        n: SupportsIndex,
        kernel: Kernel,
        *,
        shared_memory: int = 0,
        cooperative: bool = False,
        device: Device | None = None,
    ) -> LaunchConfig:
        """Return a shape with a thread for each of `n` elements, and the best block size.

        Parameters
        ----------
        n : int
            Number of elements; for 0 there is still one block.
        kernel : Kernel
            The kernel that is to be launched.
        shared_memory : int
            Dynamic shared memory per block, in bytes.
        cooperative : bool
            Whether the blocks may wait for each other, and so must be on the device together.
        device : Device, optional
            Device to launch on; by default device 0.

        Returns
        -------
        LaunchConfig
            In one dimension. The last block may have threads without an element: the kernel has to
            compare its index with `n`.

        Raises
        ------
        ValueError
            If `n` is negative or needs more blocks than a grid can have, or, with `cooperative`,
            than the device at a time; or if the kernel cannot run with so much shared memory.

        See Also
        --------
        Kernel.max_active_blocks : What the choice is based on.

        Notes
        -----
        The block size is the largest of those with which most threads can be on a multiprocessor
        at the same time.

        References
        ----------
        ``cuOccupancyMaxActiveBlocksPerMultiprocessor``

        Examples
        --------
        >>> source = 'extern "C" __global__ void f(int n) {}'
        >>> kernel = cudago.Program(source).compile()["f"]
        >>> config = cudago.LaunchConfig.for_elements(1_000_000, kernel)
        >>> config.grid[0] * config.block[0] >= 1_000_000
        True
        """
        count = whole(n, "n")
        if count < 0:
            raise ValueError(f"n must be at least 0, got {number_text(count)}")
        on = device_or_first(device)
        block = _best_block(kernel, shared_memory, on)
        grid = max(1, -(-count // block))
        most = on.properties.max_grid_dim_x
        if cooperative:
            each = kernel.max_active_blocks(block, shared_memory=shared_memory, device=on)
            most = each * on.properties.multiprocessor_count
        if grid > most:
            raise ValueError(
                f"n must be at most {most * block} for this kernel: {most} blocks of {block} "
                f"threads; got {number_text(count)}"
            )
        return cls(grid, block, shared_memory=shared_memory, cooperative=cooperative)

    def _key(self) -> tuple[object, ...]:
        return (
            self.grid,
            self.block,
            self.cluster,
            self.shared_memory,
            self.cooperative,
            self.priority,
            self.programmatic,
            self.programmatic_event,
            self.trigger_at_block_start,
            self.launch_completion_event,
        )

    def __reduce__(self) -> tuple[object, ...]:
        if self.programmatic_event or self.launch_completion_event:
            raise TypeError("cannot pickle a LaunchConfig with an event, which is of this process")
        return _remake, self._key()[:-3]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LaunchConfig) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        text = f"LaunchConfig(grid={self.grid}, block={self.block}"
        for name in _SHOWN:
            if value := getattr(self, name):
                text += f", {name}={value}"
        return text + ")"


def _best_block(kernel: Kernel, shared_memory: int, device: Device) -> int:
    """Return the block size with which most threads run at once; of several the largest."""
    if not isinstance(kernel, _core.Kernel):
        raise TypeError(f"kernel must be a Kernel, not {type(kernel).__name__}")
    warp = device.properties.warp_size
    possible = device.properties.max_threads_per_multiprocessor
    largest = kernel.attributes_on(device).max_threads_per_block
    best = most = 0
    # Down by warps; a limit that is not a multiple of one, from __launch_bounds__, is tried too.
    for block in (largest, *range((largest - 1) // warp * warp, 0, -warp)):
        blocks = kernel.max_active_blocks(block, shared_memory=shared_memory, device=device)
        if blocks * block > most:
            best, most = block, blocks * block
        if most == possible:
            break
    if not best:
        raise ValueError(
            f"kernel {kernel.name} cannot run with {shared_memory} bytes of dynamic shared memory "
            f"on device {device.ordinal}, in blocks of any size"
        )
    return best


def _remake(
    grid: Dims,
    block: Dims,
    cluster: Dims | None,
    shared_memory: int,
    cooperative: bool,
    priority: int | None,
    programmatic: bool = False,
) -> LaunchConfig:
    """Unpickle, with all checks."""
    return LaunchConfig(
        grid,
        block,
        cluster=cluster,
        shared_memory=shared_memory,
        cooperative=cooperative,
        priority=priority,
        programmatic=programmatic,
    )


_core._set_class("LaunchConfig", LaunchConfig)
