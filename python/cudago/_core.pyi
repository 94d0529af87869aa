# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The native module: its types, and the documentation of what users call directly in C.

``make gen`` (pyext/gendocs.py) generates the documentation strings of the C files from this file.

The classes are the bases of the public ones, which the Python files define and register with
``_set_class``. Names that begin with an underscore are for those files.
"""

from collections.abc import Callable, Container, Iterator
from contextlib import AbstractContextManager
from types import EllipsisType, ModuleType, TracebackType
from typing import Any, Literal, NoReturn, Self, SupportsIndex, TypeAlias, TypeVar, final, overload

import numpy as np
from typing_extensions import CapsuleType

from ._graph import exec as _exec
from ._graph import exec_node as _exec_node
from ._graph import graph as _graph
from ._graph import node as _graph_node
from ._graph import slot as _slot
from ._kernel import kernel as _kernel
from ._kernel import launch as _launch
from ._memory import buffer as _buffers
from ._memory import device as _device
from ._memory import external as _external
from ._memory import resource as _resource
from ._stream import event as _event
from ._stream import green as _green
from ._stream import semaphore as _semaphore
from ._stream import stream as _stream
from ._tensor import tensor as _tensor
from .typing import (
    BufferLike,
    Dims,
    KernelArgument,
    MemoryLike,
    StreamLike,
    SupportsDLPack,
    WaitCondition,
)

_T = TypeVar("_T")
_Resource = TypeVar("_Resource", bound=MemoryResource)
_Config = TypeVar("_Config", bound=LaunchConfig)

__version__: str
_gobind: ModuleType

# --- devices, streams, events ---------------------------------------------------------------------

class Device:
    def allocate(self, size: SupportsIndex, *, stream: StreamLike | None = None) -> _buffers.Buffer:
        """Allocate memory from `memory_resource`.

        Parameters
        ----------
        size : int
            Size in bytes. An empty buffer has no address.
        stream : Stream
            Stream that orders the allocation, and later the free. Required for device memory.

        Returns
        -------
        Buffer
            Its content is undefined. Work on other streams must be ordered after `stream`.

        Notes
        -----
        Stream-ordered on `stream`, and captured as a node that allocates: `MemoryResource.allocate`
        says what that means.

        The memory is freed when the buffer, its views and all other holders are gone: in the order
        of `stream`, after the last work that uses it on any stream.

        References
        ----------
        ``cuMemAllocFromPoolAsync``, ``cuMemFreeAsync``

        Examples
        --------
        >>> device.allocate(4096, stream=stream).size
        4096
        """

    def sync(self) -> None:
        """Block until all work on the device has completed.

        Raises
        ------
        CUDAError
            If any work queued earlier has failed.
        ValueError
            If a stream is capturing. A capture of cudago's continues; one that another library
            began is invalidated.

        Notes
        -----
        Waits for all streams, including those of other libraries. Ctrl-C ends the wait.

        References
        ----------
        ``cuCtxSynchronize``
        """

    @property
    def ordinal(self) -> int:
        """The device's number."""

    @property
    def memory_resource(self) -> _resource.MemoryResource:
        """The resource that `allocate` uses: by default, the device's default pool.

        Can be set, to one that is open and of this device, or of the host's memory.
        """

    @memory_resource.setter
    def memory_resource(self, value: MemoryResource, /) -> None: ...
    @property
    def reads_pageable_memory(self) -> bool:
        """Whether kernels read pageable host memory, so that a NumPy array can be an argument."""
    def _reset(self) -> None: ...

class Stream:
    def close(self) -> None:
        """Close the stream; its queued work still completes. Closing twice is fine.

        Notes
        -----
        If the stream is capturing, or memory is still to be freed on it, the ``CUstream`` is
        destroyed after that.

        References
        ----------
        ``cuStreamDestroy``
        """

    def sync(self) -> None:
        """Block until all work queued on the stream has completed.

        Raises
        ------
        CUDAError
            If any work queued earlier has failed.
        ValueError
            If the stream is capturing. The capture continues.

        Notes
        -----
        Ctrl-C ends the wait.

        References
        ----------
        ``cuStreamSynchronize``
        """

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return ``(0, handle)``, the protocol by which libraries exchange streams."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def is_done(self) -> bool:
        """Whether all work queued on the stream has completed. ValueError while it is capturing."""

    @property
    def is_capturing(self) -> bool:
        """Whether work queued on the stream is being recorded."""

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""

    @property
    def handle(self) -> int:
        """The ``CUstream``, as an integer."""

    @property
    def priority(self) -> int:
        """The priority after clamping; lower numbers are served first."""

    @property
    def _is_idle(self) -> bool: ...
    @property
    def _number(self) -> int: ...
    @property
    def _ordinal(self) -> int: ...
    @property
    def _id(self) -> int: ...
    def record(self, event: _event.Event | None = None, *, timing: bool = False) -> _event.Event:
        """Mark the work queued so far.

        Parameters
        ----------
        event : Event, optional
            The event to record; by default a new one.
        timing : bool
            Whether the new event can measure time.

        Returns
        -------
        Event
            Complete once all work queued before it has completed. Recording an event again does not
            change what existing waits wait for.

        Raises
        ------
        ValueError
            If `timing` is asked of a given event, which has it or not since it was made.

        Notes
        -----
        Stream-ordered on this stream. Captured as a dependency, without a node: a later `wait` in
        the capture depends on the work before the mark.

        References
        ----------
        ``cuEventRecord``

        Examples
        --------
        >>> event = stream.record()
        >>> event.sync()
        >>> event.is_done
        True
        """

    def _wait_event(self, event: Event, /) -> None: ...
    def _wait_handle(self, event: int, /) -> None: ...
    def _callback(self, func: Callable[[], object], /) -> None: ...

class Event:
    def close(self) -> None:
        """Close the event; existing waits are not affected. Closing twice is fine.

        References
        ----------
        ``cuEventDestroy``
        """

    def sync(self) -> None:
        """Block until the work that the event marks has completed.

        Raises
        ------
        CUDAError
            If the work failed.
        ValueError
            If the event was last recorded in a capture: it stands for a place in the graph, and no
            work of this process is marked. A capture that is open continues.

        Notes
        -----
        Ctrl-C ends the wait. An event that was never recorded is complete.

        References
        ----------
        ``cuEventSynchronize``
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def is_done(self) -> bool:
        """Whether the work that the event marks has completed.

        ValueError if the event was last recorded in a capture.
        """

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""

    @property
    def handle(self) -> int:
        """The ``CUevent``, as an integer."""

    @property
    def is_ipc_enabled(self) -> bool:
        """Whether processes share the event."""

    @property
    def _ordinal(self) -> int: ...
    def _export(self) -> bytes: ...
    def _elapsed_ms(self, start: Event, /) -> float: ...

class ExternalSemaphore:
    def close(self) -> None:
        """Close the semaphore; the work that uses it is not affected. Closing twice is fine.

        References
        ----------
        ``cuDestroyExternalSemaphore``
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""

    @property
    def is_timeline(self) -> bool:
        """Whether it has a value, and is not only signaled or not."""

    @property
    def handle(self) -> int:
        """The ``CUexternalSemaphore``, as an integer."""

    @property
    def _ordinal(self) -> int: ...

class ExternalMemory:
    def close(self) -> None:
        """Close the memory; buffers over it are not affected. Closing twice is fine.

        References
        ----------
        ``cuDestroyExternalMemory``
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""

    @property
    def size(self) -> int:
        """Size in bytes."""

    @property
    def _ordinal(self) -> int: ...
    def _map(self, offset: int, size: int, stream: StreamLike, /) -> _buffers.Buffer: ...

class GreenContext:
    def close(self) -> None:
        """Close the green context. Closing twice is fine.

        Its streams stay usable and keep it, as do graphs that were captured in them.

        References
        ----------
        ``cuGreenCtxDestroy``
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""

    @property
    def handle(self) -> int:
        """The ``CUgreenCtx``, as an integer."""

    @property
    def sm_count(self) -> int:
        """Number of multiprocessors that its kernels run on, according to the driver."""

    @property
    def _ordinal(self) -> int: ...
    def _stream(self, priority: int, /) -> _stream.Stream: ...

# --- memory ---------------------------------------------------------------------------------------

class MemoryResource:
    # As narrow as what a subclass of the user's has to take.
    def allocate(self, size: int, /, *, stream: StreamLike) -> _buffers.Buffer:
        """Allocate memory.

        Parameters
        ----------
        size : int
            Size in bytes. An empty buffer has no address.
        stream : Stream
            Stream that orders the allocation, and later the free. Only pinned and managed memory
            without a pool can do without: it is usable at once; with a stream, its free waits for
            that stream's work.

        Returns
        -------
        Buffer
            Its content is undefined. It stays valid after the resource is closed.

        Notes
        -----
        Device memory is stream-ordered on `stream`. That of a pool is captured as a node, and then
        belongs to the graph as that of `Graph.allocate` does: its kind is ``"graph"``, each launch
        allocates it at the same address, and until a launch has, only what the same capture records
        can use it. When the buffer, its views and all other holders but graphs are gone before the
        capture ends, a node frees it there, after all that used it. Otherwise it stays allocated
        after a launch: see `Buffer.free`, and ``auto_free`` of `Graph.instantiate`. If the capture
        fails, so does all use of the memory, with `ClosedError`.

        In a capture that another library began, memory is allocated at once, and is no part of the
        graph: it lives until the graph, all that was made of it and the Buffer have ended. So no
        memory is used twice in such a capture.

        Virtual memory, and memory of pools that the host can read, is not allowed while `stream` is
        capturing. For other memory, blocks until it is there; it can be allocated
        during a capture, and is not part of it.

        References
        ----------
        ``cuMemAllocFromPoolAsync``, ``cuMemHostAlloc``, ``cuMemAllocManaged``

        Examples
        --------
        >>> with cudago.PinnedMemoryResource() as resource:
        ...     resource.allocate(64).kind
        'pinned'
        """

    def close(self) -> None:
        """Close the resource; its buffers stay valid. Closing twice is fine.

        References
        ----------
        ``cuMemPoolTrimTo``
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""

    @property
    def _ordinal(self) -> int | None: ...
    @_ordinal.setter
    def _ordinal(self, value: int | None, /) -> None: ...
    def _stat(self, attribute: int, /) -> int: ...
    def _set_stat(self, attribute: int, value: int, /) -> None: ...
    def _trim(self, keep: int, /) -> None: ...
    def _peers(self) -> list[int]: ...
    def _set_peer(self, peer: Device, allowed: bool, /) -> None: ...

class Buffer:
    def copy_from(self, src: MemoryLike, *, stream: StreamLike) -> None:
        """Copy bytes into this buffer.

        Parameters
        ----------
        src : Buffer, Pointer, Tensor or any object with memory
            Source: NumPy arrays, ``bytes``, tensors of other libraries. C-contiguous; exactly
            ``self.size`` bytes.
        stream : Stream
            Stream that orders the copy.

        Raises
        ------
        ValueError
            If the sizes differ; if the sides overlap and are not the same bytes, since a GPU moves
            them in any order; or if a side is memory of another device than the stream's, which
            has no access to it, and the other side is host memory or the stream is capturing.

        Notes
        -----
        Stream-ordered on `stream`. Blocks until `src` has been read if it is pageable memory.
        Captured as a memcpy node, which keeps both sides alive and reads `src` again at each
        launch.

        Memory of two devices is copied in a stream of either, whatever access they have. The copy
        waits for nothing on the other device: let `stream` wait for what is to come before.

        A tensor of another library is read after the work on that library's current stream.

        References
        ----------
        ``cuMemcpyAsync``, ``cuMemcpyPeerAsync``
        """

    def copy_to(self, dst: MemoryLike, *, stream: StreamLike) -> None:
        """Copy this buffer's bytes to other memory.

        Parameters
        ----------
        dst : Buffer, Pointer, Tensor or any object with memory
            Destination: NumPy arrays, ``bytearray``, tensors of other libraries. Writable,
            C-contiguous; exactly ``self.size`` bytes.
        stream : Stream
            Stream that orders the copy.

        Raises
        ------
        ValueError
            As for `copy_from`.

        Notes
        -----
        Stream-ordered on `stream`. Blocks until `dst` has been written if it is pageable memory;
        for pinned and managed memory, call `Stream.sync` before the host reads it. Captured as a
        memcpy node, which keeps both sides alive and writes `dst` at each launch.

        References
        ----------
        ``cuMemcpyAsync``

        Examples
        --------
        >>> buffer = device.allocate(4, stream=stream)
        >>> buffer.fill(1, stream=stream)
        >>> out = bytearray(4)
        >>> buffer.copy_to(out, stream=stream)
        >>> out
        bytearray(b'\\x01\\x01\\x01\\x01')
        """

    def fill(self, value: int | BufferLike | np.generic, *, stream: StreamLike) -> None:
        """Fill the buffer with a repeated value.

        Parameters
        ----------
        value : int or bytes
            An int is the value of every byte, from -128 to 255. A NumPy scalar or ``bytes`` of 1, 2
            or 4 bytes is repeated; its size divides ``self.size``.
        stream : Stream
            Stream that orders the fill.

        Raises
        ------
        ValueError
            If the stream is of another device, which has no access to the memory.
        BufferError
            If it is host memory that the driver does not know: fill the array itself.

        See Also
        --------
        Tensor.fill : Sets elements, of any type.

        Notes
        -----
        Stream-ordered on `stream`. Captured as a memset node, which keeps the buffer alive.

        References
        ----------
        ``cuMemsetD8Async``, ``cuMemsetD16Async``, ``cuMemsetD32Async``

        Examples
        --------
        >>> buffer = device.allocate(8, stream=stream)
        >>> buffer.fill(b"\\x01\\0\\0\\0", stream=stream)
        >>> buffer.view("int32").numpy(stream=stream).tolist()
        [1, 1]
        """

    def free(self, *, stream: StreamLike) -> None:
        """Free memory that a graph launch allocated.

        Only for `Node.buffer`, where no node of the graph frees it; the next launch allocates it
        again. Other memory needs no such call: it is freed when its last holder is gone.

        Parameters
        ----------
        stream : Stream
            Stream that orders the free, which must come after all uses of the memory.

        Raises
        ------
        ValueError
            If a node of the graph frees it; in a callback, while another thread is about to use it.
        CUDAError
            If the memory is not allocated now: no launch has allocated it since it was last freed.

        Notes
        -----
        Stream-ordered on `stream`; captured as a node that frees the memory at each launch. Waits
        for other threads' calls that are about to use the memory, as does the launch of a graph
        that frees it; a call that uses it beside the free is a ValueError.

        References
        ----------
        ``cuMemFreeAsync``

        Examples
        --------
        >>> graph = cudago.Graph(device)
        >>> made = graph.allocate(4)
        >>> node = made.memset(made.buffer, 7)
        >>> graph.instantiate().launch(stream)
        >>> made.buffer.view("u1").numpy(stream=stream)
        array([7, 7, 7, 7], dtype=uint8)
        >>> made.buffer.free(stream=stream)
        """

    def grow(self, size: SupportsIndex, /) -> None:
        """Grow the buffer in place to a new size.

        Its address and content do not change. Existing pointers, views, tensors and graphs stay
        valid, and pointers into this buffer may move up to its new end.

        Parameters
        ----------
        size : int
            New size in bytes, at least ``self.size``. The content of the new bytes is undefined.

        Raises
        ------
        TypeError
            If the buffer is not one that a `VirtualMemoryResource` of this process allocated, or is
            a view of one.
        OutOfMemoryError
            If memory is short, or the addresses after the reserved range are taken. The buffer is
            unchanged.

        Notes
        -----
        Blocks until the memory is there. The new bytes can then be used on every stream. What other
        processes have received of the buffer stays as large as it is: send it again.

        References
        ----------
        ``cuMemCreate``, ``cuMemMap``, ``cuMemSetAccess``, ``cuMemAddressReserve``
        """

    def view(
        self, dtype: Any, shape: Dims | None = None, strides: Dims | None = None
    ) -> _tensor.Tensor:
        """Return a tensor over the buffer's bytes.

        Parameters
        ----------
        dtype : dtype_like
            Element type: a name ("float32", "bfloat16"), a NumPy or PyTorch dtype, or a string such
            as "f4".
        shape : int or sequence of int, optional
            Sizes of the dimensions, one of which may be -1; by default one dimension with all
            elements.
        strides : int or sequence of int, optional
            Stride of each dimension, in elements; by default row-major.

        Returns
        -------
        Tensor
            Over the same memory, which it keeps alive.

        Raises
        ------
        ValueError
            If the tensor would not fit the buffer.
        OverflowError
            If it has more than 64 bits tell.

        Examples
        --------
        >>> device.allocate(24, stream=stream).view("f4", (2, -1)).shape
        (2, 3)
        """

    def close(self) -> None:
        """Drop this reference to the memory, freed with the last one. Closing twice is fine.

        Raises
        ------
        BufferError
            If a Python buffer over the memory, such as a NumPy array, is in use.

        Notes
        -----
        Stream-ordered: the memory is freed after the work queued on its stream, and once work on
        other streams that uses it has ended: no stream waits for that. If the free would become
        part of a capture, it is postponed until the capture ends; what that capture itself
        has allocated, a node of it frees.

        References
        ----------
        ``cuMemFreeAsync``
        """

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Export the bytes as a DLPack capsule, as the array API standard defines.

        Memory that the consumer reads on the host, such as pinned or simulated memory, blocks the
        call until the work on it has completed. BufferError if such work is being captured. With
        ``stream=-1`` the call does neither.
        """

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device type and number. Simulated device memory counts as host memory."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: slice, /) -> _buffers.Buffer: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def size(self) -> int:
        """Size in bytes."""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""

    @property
    def ptr(self) -> Pointer:
        """Pointer to the first byte."""

    @property
    def handle(self) -> int:
        """Address of the first byte, as an integer."""

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""

    @property
    def kind(self) -> str:
        """Kind: "device", "pinned", "managed", "host", "foreign", "graph" or "variable"."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The bytes in Numba's CUDA array interface, version 3. Only on NVIDIA's driver."""

    @property
    def _ordinal(self) -> int | None: ...
    @property
    def _is_whole(self) -> bool: ...
    def _at(self, offset: int, size: int, /) -> _buffers.Buffer: ...
    def _advise(self, advice: int, location: int, /) -> None: ...
    def _prefetch(self, location: int, stream: StreamLike, /) -> None: ...
    def _range(self) -> tuple[int, int, tuple[int, ...], int]: ...
    def _reach(self, device: int, what: str, who: str, /) -> None: ...

@final
class Pointer:
    """A bounds-checked address.

    Arithmetic stays within the buffer, which the pointer keeps alive: ``p + 16`` and ``p - 16`` are
    pointers, and ``p - q`` is the distance in bytes between two pointers into one allocation. As in
    C, one past the end is allowed. ``int(p)`` is the address. Once the buffer is closed, use of the
    pointer is a `ClosedError`. Created by `Buffer.ptr` and `Tensor.ptr`. Kernels take a pointer as
    an argument; copies treat it as the bytes from there to the buffer's end.

    Raises
    ------
    IndexError
        If arithmetic would leave the buffer.
    ValueError
        If pointers into different allocations are subtracted.

    Notes
    -----
    Pointers compare by address.

    Examples
    --------
    >>> p = device.allocate(64, stream=stream).ptr + 16
    >>> p.offset, p.buffer.size, p - p.buffer.ptr
    (16, 64, 16)
    """

    @property
    def buffer(self) -> _buffers.Buffer:
        """The buffer that the pointer points into and keeps alive."""

    @property
    def offset(self) -> int:
        """Bytes from the buffer's start."""

    def __add__(self, nbytes: SupportsIndex, /) -> Pointer: ...
    def __radd__(self, nbytes: SupportsIndex, /) -> Pointer: ...
    @overload
    def __sub__(self, other: Pointer, /) -> int: ...  # type: ignore[overload-overlap]
    @overload
    def __sub__(self, nbytes: SupportsIndex, /) -> Pointer: ...
    def __lt__(self, other: Pointer, /) -> bool: ...
    def __le__(self, other: Pointer, /) -> bool: ...
    def __gt__(self, other: Pointer, /) -> bool: ...
    def __ge__(self, other: Pointer, /) -> bool: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __bool__(self) -> bool: ...

class Tensor:
    def close(self) -> None:
        """Drop this reference to the memory, freed with the last one. Closing twice is fine.

        Raises
        ------
        BufferError
            If a Python buffer over the memory, such as a NumPy array, is in use.
        """

    def reshape(self, *shape: Any) -> _tensor.Tensor:
        """Return the same elements with another shape, without a copy.

        Parameters
        ----------
        *shape : int, or one sequence of int
            Sizes of the dimensions, one of which may be -1.

        Returns
        -------
        Tensor
            Over the same memory.

        Raises
        ------
        BufferError
            If the tensor is not contiguous.
        ValueError
            If the number of elements differs.

        Examples
        --------
        >>> cudago.empty(6, stream=stream).reshape(2, -1).shape
        (2, 3)
        """

    def transpose(self, *axes: Any) -> _tensor.Tensor:
        """Return the tensor with its dimensions in another order, without a copy.

        Parameters
        ----------
        *axes : int, or one sequence of int
            For each dimension of the result the one that it is, counted from the end if it is
            negative. By default the dimensions are reversed.

        Returns
        -------
        Tensor
            Over the same memory.

        Raises
        ------
        ValueError
            If `axes` does not have each dimension once.

        See Also
        --------
        T : All dimensions in reverse order.
        mT : The last two exchanged.

        Examples
        --------
        >>> cudago.empty((2, 3, 4), stream=stream).transpose(2, 0, 1).shape
        (4, 2, 3)
        """

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Export as a DLPack capsule, as the array API standard defines: see `Buffer.__dlpack__`.

        Blocks, and may be refused during a capture, as that does.
        """

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device type and number. Simulated device memory counts as host memory."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[_tensor.Tensor]: ...
    def __getitem__(
        self,
        key: SupportsIndex
        | slice
        | EllipsisType
        | tuple[SupportsIndex | slice | EllipsisType | None, ...]
        | None,
        /,
    ) -> _tensor.Tensor: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __bool__(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Stride of each dimension, in elements."""

    @property
    def dtype(self) -> np.dtype[Any] | str:
        """Element type: a NumPy dtype, or a name such as "bfloat16" where NumPy has none."""

    @property
    def dtype_name(self) -> str:
        """Element type by name."""

    @property
    def ndim(self) -> int:
        """Number of dimensions."""

    @property
    def size(self) -> int:
        """Number of elements."""

    @property
    def nbytes(self) -> int:
        """Size of all elements in bytes, without gaps."""

    @property
    def itemsize(self) -> int:
        """Size of one element in bytes, rounded up."""

    @property
    def handle(self) -> int:
        """Address of the first element, as an integer.

        BufferError if it has none, because it begins within a byte: see the notes on `Tensor`.
        """

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""

    @property
    def is_readonly(self) -> bool:
        """Whether the memory must not be written through this tensor."""

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""

    @property
    def origin(self) -> str:
        """The way to the memory, which views share.

        "cudago" if it was allocated or copied here. "exchange table", "capsule" or "legacy capsule"
        if it came from another library over DLPack: from fast to slow, and a legacy capsule cannot
        say that it is read-only. "array interface" if `asarray` took it from an object that has
        ``__cuda_array_interface__`` alone.
        """

    @property
    def T(self) -> _tensor.Tensor:
        """The tensor with its dimensions in reverse order."""

    @property
    def mT(self) -> _tensor.Tensor:
        """The tensor with its last two dimensions exchanged; ValueError if there are fewer."""

    @property
    def buffer(self) -> _buffers.Buffer:
        """The tensor's bytes as a Buffer. BufferError if the tensor is not contiguous."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Numba's CUDA array interface, version 3. Only for memory of NVIDIA's driver."""

    __dlpack_c_exchange_api__: CapsuleType
    __c_dlpack_exchange_api__: CapsuleType
    @property
    def _span(self) -> tuple[_buffers.Buffer, int]: ...
    @property
    def _packing(self) -> tuple[int, bool]: ...
    def _await_work(self) -> None: ...
    def _retyped(self, dtype: str, /) -> _tensor.Tensor: ...
    @property
    def _ordinal(self) -> int | None: ...
    @property
    def _memory(self) -> tuple[int, int, int, int, int]: ...

def from_dlpack(
    obj: SupportsDLPack | CapsuleType,
    *,
    stream: StreamLike | int | None = None,
    device: Any = None,
    copy: bool | None = None,
) -> _tensor.Tensor:
    """Share the memory of another library's tensor.

    Parameters
    ----------
    obj : object
        Any object with ``__dlpack__`` and ``__dlpack_device__``: a PyTorch, NumPy, CuPy or JAX
        array, a Tensor; or a DLPack capsule. Types with DLPack's C exchange table, such as
        PyTorch's, use the table, which is faster.
    stream : Stream or int, optional
        Stream on which the tensor will be used: a Stream, an object with ``__cuda_stream__``, or a
        number; by default the legacy default stream. It waits for the pending work of the
        producer, and for that of cudago if the memory is cudago's; -1 means that no wait is needed.
        For a Tensor of cudago only a stream that is named waits.
    device : Device, str or tuple of int, optional
        Where the Tensor is to be: a Device, "cpu", "cuda", "cuda:1", or DLPack's type and number.
        A tensor that is elsewhere is copied, on the device's default stream.
    copy : bool, optional
        True requests a copy, False forbids one. By default nothing is copied unless the producer
        has to, or `device` asks for it.

    Returns
    -------
    Tensor
        Over the same memory. The producer's object lives as long as the Tensor and anything made
        from it.

    Raises
    ------
    BufferError
        If the tensor cannot be described: an unknown element type or device, an unsupported major
        version of DLPack, or a capsule that was already consumed; or if `copy` is False and
        `device` another than the tensor's.

    See Also
    --------
    to_torch : The other direction, for PyTorch.

    Notes
    -----
    Blocks if the producer waits for its work, as cudago does for memory that the host reads; cudago
    also refuses such memory while work on it is being captured.

    Memory of cudago's that comes back is what it was: on its device, of its allocation, ordered by
    its stream, also on the simulated driver, where other libraries take it for host memory. Only a
    tensor without elements has no memory to be known by.

    Strides of dimensions of size 1 are those of a row-major tensor, whatever the producer wrote.

    Read-only tensors stay read-only, and JAX's arrays are. Libraries older than DLPack 1.0 cannot
    mark them, so other tensors of theirs come out writable. The exchange table ignores
    ``requires_grad``: autograd does not see writes through the Tensor.

    References
    ----------
    https://dmlc.github.io/dlpack/latest/python_spec.html

    Examples
    --------
    >>> t = cudago.from_dlpack(numpy.arange(6, dtype="int32").reshape(2, 3))
    >>> t.shape, t.strides
    ((2, 3), (3, 1))
    """

def to_torch(tensor: Tensor, /) -> Any:
    """Share a Tensor's memory with PyTorch, by the fastest way.

    Parameters
    ----------
    tensor : Tensor
        Pinned and simulated memory becomes a tensor on PyTorch's device "cpu", managed memory one
        on "cuda".

    Returns
    -------
    torch.Tensor
        Over the same memory, which it keeps alive.

    Raises
    ------
    BufferError
        If the tensor has a negative stride.
    ImportError
        If PyTorch is not installed.
    RuntimeError
        If PyTorch lacks the element type.

    See Also
    --------
    from_dlpack : The other direction.

    Notes
    -----
    Uses DLPack's C exchange table where PyTorch has one (2.10 and newer), and ``torch.from_dlpack``
    otherwise. PyTorch's current stream waits for pending work on the tensor; for memory that
    PyTorch reads on the host, the call blocks until that work has completed. PyTorch has no
    read-only tensors: do not write to a tensor made from read-only memory.

    Examples
    --------
    >>> t = cudago.zeros((2, 2), "float32", stream=stream)
    >>> cudago.to_torch(t).sum().item()  # doctest: +SKIP
    0.0
    """

# --- code and launches ----------------------------------------------------------------------------

@final
class Handle:
    @property
    def id(self) -> int: ...

class Kernel:
    @property
    def name(self) -> str:
        """The kernel's name in its module."""

    def _parameters(self) -> list[tuple[str, int, int]]: ...
    def _attribute(self, device: Device, attribute: int, /) -> int: ...
    def _set_attribute(self, device: Device, attribute: int, value: int, /) -> None: ...
    def _set_elements(self, elements: bytes, /) -> None: ...
    def _set_names(self, names: tuple[str | None, ...], /) -> None: ...
    def _set_work(self, work: str, counted: bool, /) -> None: ...
    @property
    def _work(self) -> str: ...
    def _max_active_blocks(self, device: Device, block: int, shared: int, /) -> int: ...
    def _clusters(self, device: Device, config: LaunchConfig, active: bool, /) -> int: ...

class Descriptor:
    def close(self) -> None:
        """Let go of the memory. Closing twice is fine.

        Notes
        -----
        Launches in flight and graphs that have it as an argument keep it, and the memory.

        References
        ----------
        ``cuTexObjectDestroy``, ``cuSurfObjectDestroy``
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""

    @property
    def _tensor(self) -> _tensor.Tensor | OpaqueArray | MipmappedArray | None: ...
    @property
    def _facts(self) -> tuple[Any, ...]: ...
    @property
    def _bytes(self) -> bytes: ...

class MipmappedArray:
    def close(self) -> None:
        """Let go of the memory. Closing twice is fine.

        Notes
        -----
        Levels and textures of the array, launches in flight and graphs that use it keep the memory.

        References
        ----------
        ``cuMipmappedArrayDestroy``
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""

    @property
    def handle(self) -> int:
        """The ``CUmipmappedArray``, as an integer."""

    @property
    def nbytes(self) -> int:
        """Size of all elements of all levels, in bytes."""

    @property
    def _facts(self) -> tuple[Any, ...]: ...
    @property
    def _ordinal(self) -> int: ...

class OpaqueArray:
    def close(self) -> None:
        """Let go of the memory. Closing twice is fine.

        Notes
        -----
        Textures and surfaces of the array, launches in flight and graphs that use it keep the
        memory.

        References
        ----------
        ``cuArrayDestroy``
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""

    @property
    def handle(self) -> int:
        """The ``CUarray``, as an integer."""

    @property
    def nbytes(self) -> int:
        """Size of all elements, in bytes."""

    @property
    def _facts(self) -> tuple[Any, ...]: ...
    @property
    def _ordinal(self) -> int: ...

class LaunchConfig:
    @property
    def grid(self) -> tuple[int, int, int]:
        """Grid size in blocks: x, y and z."""

    @property
    def block(self) -> tuple[int, int, int]:
        """Block size in threads: x, y and z."""

    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """Cluster size in blocks: x, y and z; or None."""

    @property
    def shared_memory(self) -> int:
        """Dynamic shared memory per block, in bytes."""

    @property
    def cooperative(self) -> bool:
        """Whether this is a cooperative launch."""

    @property
    def priority(self) -> int | None:
        """Priority of the launch, or None."""

    @property
    def programmatic(self) -> bool:
        """Whether the kernel may start before the one in front of it has ended."""

    @property
    def programmatic_event(self) -> _event.Event | None:
        """Event that each launch records, for when its blocks have triggered it; or None."""

    @property
    def trigger_at_block_start(self) -> bool:
        """Whether each block triggers the programmatic event when it begins."""

    @property
    def launch_completion_event(self) -> _event.Event | None:
        """Event that each launch records, for when all its blocks have begun; or None."""

def launch(
    stream: StreamLike,
    config: _launch.LaunchConfig,
    kernel: _kernel.Kernel,
    /,
    *args: KernelArgument,
    **kwargs: KernelArgument,
) -> None:
    """Launch a kernel.

    Parameters
    ----------
    stream : Stream
        Stream that orders the launch: a Stream, or an object with ``__cuda_stream__``.
    config : LaunchConfig
        The launch shape.
    kernel : Kernel
        The kernel. The first launch on a device loads it there.
    *args
        One for each parameter, in order:

        - for a pointer: a Buffer or a view of one, a Pointer, a Tensor, any object with
          ``__dlpack__`` or ``__cuda_array_interface__``, any object with the buffer protocol whose
          memory is pinned, managed, or on a device that reads pageable memory, an address, or None
          for a null pointer;
        - for a number: a Python number, a NumPy scalar or array without dimensions, or a ctypes
          scalar, which for a pointer is an address; a complex number for two floats or doubles;
        - for a struct: ``bytes``, a NumPy structured scalar or a dataclass's instance, of its size;
        - for a ``CUtensorMap``: a TensorMap; for a ``cudaTextureObject_t``: a Texture;
          for a ``cudaSurfaceObject_t``: a Surface.
    **kwargs
        Arguments by the names of their parameters, after those by position;
        `Kernel.parameter_names` says which are known.

    Raises
    ------
    TypeError
        If the number of arguments is wrong, or one does not suit its parameter. The message names
        the parameter, its type and the argument. Or if one is read-only memory, and the kernel's
        PTX does not show that nothing is stored through its parameter.
    ValueError
        If the shape exceeds a limit of the device or the kernel, an argument is on another device,
        or is ``bytes`` of another size than the struct.
    OverflowError
        If a number does not fit its parameter.

    See Also
    --------
    Graph.launch : Adds the launch to a graph instead.

    Notes
    -----
    Stream-ordered on `stream`. Captured as a kernel node, which keeps the kernel and every argument
    that has memory alive. The GIL is held while few launches are outstanding on a stream of cudago.

    All arguments are checked before the launch. Buffers of cudago can be dropped right after the
    call; host memory and tensors of other libraries are kept until the launch has completed. Errors
    in the kernel itself are reported by a later call.

    References
    ----------
    ``cuLaunchKernelEx``

    Examples
    --------
    >>> source = 'extern "C" __global__ void set(int* x, int value) { *x = value; }'
    >>> kernel = cudago.Program(source).compile()["set"]
    >>> x = cudago.empty(1, "int32", stream=stream)
    >>> cudago.launch(stream, cudago.LaunchConfig(grid=1, block=1), kernel, x, value=7)
    >>> x.numpy(stream=stream)
    array([7], dtype=int32)
    """

# --- graphs ---------------------------------------------------------------------------------------

# The numbers and texts among a node's parameters, or None; and the rows of _retained.
_Params: TypeAlias = tuple[tuple[Any, ...] | None, tuple[tuple[Any, int, str, str, str], ...]]

@final
class Operand:
    @property
    def object(self) -> Any: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def whole(self) -> _buffers.Buffer | None: ...
    @property
    def at(self) -> int: ...

class Graph:
    def close(self) -> None:
        """Close the graph; executables made from it remain valid. Closing twice is fine.

        Raises
        ------
        ValueError
            If the graph is still being captured.

        Notes
        -----
        Operands that only this graph keeps are released.

        References
        ----------
        ``cuGraphDestroy``
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def _is_closed(self) -> bool: ...
    def launch(
        self,
        config: _launch.LaunchConfig,
        kernel: _kernel.Kernel,
        *args: KernelArgument | _slot.Slot,
        name: str | None = None,
        **kwargs: KernelArgument | _slot.Slot,
    ) -> _graph_node.Node:
        """Add a kernel launch.

        Parameters
        ----------
        config : LaunchConfig
            The launch shape. A priority counts in executables made with
            ``instantiate(priorities=True)``.
        kernel : Kernel
            The kernel.
        *args
            As for `cudago.launch`. The graph keeps every argument that has memory.
        name : str, optional
            Unique in the graph.
        **kwargs
            Arguments by the names of their parameters, as for `cudago.launch`. Parameters that are
            called ``config``, ``kernel`` or ``name`` are given by position.

        Returns
        -------
        Node
            The new node.

        See Also
        --------
        cudago.launch : Launches on a stream instead.

        References
        ----------
        ``cuGraphAddKernelNode_v2``, ``cuGraphKernelNodeSetAttribute``

        Examples
        --------
        >>> source = 'extern "C" __global__ void set(int* x, int value) { *x = value; }'
        >>> kernel = cudago.Program(source).compile()["set"]
        >>> x = device.allocate(4, stream=stream)
        >>> graph = cudago.Graph(device)
        >>> graph.launch(cudago.LaunchConfig(grid=1, block=1), kernel, x, 7, name="set")
        <cudago.Node 'set': kernel>
        """

    @property
    def _ordinal(self) -> int: ...
    @property
    def _body_id(self) -> int: ...
    @property
    def _outermost(self) -> _graph.Graph: ...
    @property
    def _captured_stream(self) -> _stream.Stream | None: ...
    @property
    def _uses(self) -> _slot.Uses | _slot.Pending | None: ...
    def _replace_uses(
        self, before: _slot.Uses | _slot.Pending | None, now: _slot.Uses | _slot.Pending | None, /
    ) -> bool: ...
    def _node(self, node: int, /) -> _graph_node.Node: ...
    def _node_of(self, row: tuple[int, int, str, str], /) -> _graph_node.Node: ...
    def _memcpy(self, dst: Any, src: Any, name: str | None, /) -> _graph_node.Node | None: ...
    def _add_memcpy(
        self,
        deps: tuple[int, ...],
        dst: Any,
        src: Any,
        name: str | None,
        note: _slot.Pending | None,
        /,
    ) -> int: ...
    def _add_box(
        self,
        deps: tuple[int, ...],
        dst: Tensor | OpaqueArray | Operand,
        src: Tensor | OpaqueArray | Operand,
        box: tuple[int, ...],
        name: str | None,
        /,
    ) -> int: ...
    def _update_box(
        self,
        node: int,
        dst: Tensor | OpaqueArray | Operand,
        src: Tensor | OpaqueArray | Operand,
        box: tuple[int, ...],
        /,
    ) -> None: ...
    def _add_memset(
        self,
        deps: tuple[int, ...],
        dst: Any,
        value: Any,
        name: str | None,
        note: _slot.Pending | None,
        /,
    ) -> int: ...
    def _add_memop(
        self,
        deps: tuple[int, ...],
        memory: Any,
        value: SupportsIndex,
        condition: int,
        name: str | None,
        /,
    ) -> int: ...
    def _add_kernel(
        self,
        deps: tuple[int, ...],
        config: LaunchConfig,
        kernel: Kernel,
        args: tuple[Any, ...],
        name: str | None,
        note: _slot.Pending | None,
        /,
    ) -> int: ...
    def _add_host(
        self, deps: tuple[int, ...], func: Callable[[], Any], name: str | None, /
    ) -> int: ...
    def _add_empty(self, deps: tuple[int, ...], name: str | None, /) -> int: ...
    def _add_child(
        self, deps: tuple[int, ...], graph: Graph, name: str | None, move: object, /
    ) -> int: ...
    def _add_child_of(
        self, deps: tuple[int, ...], executable: GraphExec, number: int, name: str | None, /
    ) -> int: ...
    def _add_semaphore(
        self,
        deps: tuple[int, ...],
        semaphore: Any,
        value: SupportsIndex | None,
        waits: bool,
        name: str | None,
        of: Graph | GraphExec = ...,
        number: int = ...,
        /,
    ) -> int: ...
    def _add_event(
        self,
        deps: tuple[int, ...],
        event: Any,
        record: bool,
        name: str | None,
        of: Graph | GraphExec = ...,
        number: int = ...,
        /,
    ) -> int: ...
    def _add_alloc(
        self,
        deps: tuple[int, ...],
        size: int,
        device: Device | None,
        peers: int,
        name: str | None,
        /,
    ) -> int: ...
    def _add_free(self, deps: tuple[int, ...], buffer: Buffer, name: str | None, /) -> int: ...
    def _add_conditional(
        self,
        deps: tuple[int, ...],
        condition: int,
        type: int,
        count: int,
        name: str | None,
        /,
    ) -> int: ...
    def _condition(self, default: int | None, /) -> tuple[int, int]: ...
    def _body(self, node: int, index: int, /) -> _graph.Graph: ...
    def _buffer(self, node: int, /) -> _buffers.Buffer: ...
    def _check(self, node: int, /) -> None: ...
    def _remove(self, node: int, note: _slot.Pending | None, /) -> None: ...
    def _take_back(self, made: list[int], nodes: list[_graph_node.Node], /) -> None: ...
    def _edge(self, start: int, end: int, port: int, /) -> None: ...
    def _neighbors(
        self, node: int, added: tuple[int, ...], removed: tuple[int, ...], backward: bool, /
    ) -> None: ...
    def _nodes(self) -> tuple[tuple[int, int, str, str], ...]: ...
    def _made_at(self, node: int, /) -> str | None: ...
    def _set_made_at(self, node: int, graph: _graph.Graph, of: int, /) -> None: ...
    def _node_row(self, node: int, /) -> tuple[int, int, str, str]: ...
    def _find(self, name: object, /) -> tuple[int, int, str, str] | None: ...
    def _count(self) -> int: ...
    def _edges(self) -> tuple[tuple[int, int], ...]: ...
    def _edge_data(self) -> tuple[tuple[int, int, str], ...]: ...
    def _dependencies(self, node: int, /) -> tuple[tuple[int], ...]: ...
    def _has_memory(self) -> bool: ...
    def _has_edge(self, start: int, end: int, /) -> bool: ...
    def _dependents(self, node: int, /) -> tuple[tuple[int], ...]: ...
    def _retained(self, node: int, /) -> tuple[tuple[Any, int, str, str, str], ...]: ...
    def _params(self, node: int, /) -> _Params: ...
    def _record(self, node: int, /) -> tuple[Any, ...] | None: ...
    def _dot(self) -> str: ...
    def _origin(self, stream: Stream, /) -> _stream.Stream: ...
    def _update_memcpy(
        self, node: int, dst: Any, src: Any, note: _slot.Pending | None, /
    ) -> None: ...
    def _update_memset(
        self, node: int, dst: Any, value: Any, note: _slot.Pending | None, /
    ) -> None: ...
    def _update_memop(self, node: int, memory: Any, value: Any, condition: int, /) -> None: ...
    def _update_semaphore(
        self, node: int, semaphore: Any, value: Any, waits: bool, is_own: bool, /
    ) -> None: ...
    def _update_kernel(
        self,
        node: int,
        config: LaunchConfig,
        kernel: Kernel,
        args: tuple[Any, ...],
        note: _slot.Pending | None,
        /,
    ) -> None: ...
    def _update_host(self, node: int, func: Callable[[], Any], /) -> None: ...
    def _update_event(self, node: int, event: _event.Event, /) -> None: ...
    def _update_child(self, node: int, graph: _graph.Graph, /) -> None: ...
    def _capture_into(self, stream: _stream.Stream, /) -> bool: ...
    def _export(self) -> int: ...
    def _retain(self, *objects: object) -> None: ...
    def _clone(self) -> _graph.Graph: ...
    def _instantiate(self, flags: int, /) -> _exec.GraphExec: ...

class Node:
    def launch(
        self,
        config: _launch.LaunchConfig,
        kernel: _kernel.Kernel,
        *args: KernelArgument | _slot.Slot,
        name: str | None = None,
        **kwargs: KernelArgument | _slot.Slot,
    ) -> _graph_node.Node: ...
    def _memcpy(self, dst: Any, src: Any, name: str | None, /) -> _graph_node.Node | None: ...
    @property
    def graph(self) -> _graph.Graph:
        """The graph."""

    @property
    def _id(self) -> int: ...
    @property
    def _known(self) -> tuple[int, int, str, str] | None: ...
    @_known.setter
    def _known(self, row: tuple[int, int, str, str] | None, /) -> None: ...

class ExecNode:
    @overload
    def update(
        self, /, *, dst: MemoryLike | _slot.Slot = ..., src: MemoryLike | _slot.Slot = ...
    ) -> None: ...
    @overload
    def update(
        self, /, dst: MemoryLike | _slot.Slot = ..., value: complex | BufferLike | np.generic = ...
    ) -> None: ...
    @overload
    def update(
        self,
        /,
        *,
        dst: _buffers.Buffer | _buffers.Pointer | _tensor.Tensor = ...,
        value: SupportsIndex = ...,
    ) -> None: ...
    @overload
    def update(
        self,
        /,
        *,
        src: _buffers.Buffer | _buffers.Pointer | _tensor.Tensor = ...,
        value: SupportsIndex = ...,
        condition: WaitCondition = ...,
    ) -> None: ...
    @overload
    def update(
        self, /, *, semaphore: _semaphore.ExternalSemaphore = ..., value: SupportsIndex = ...
    ) -> None: ...
    @overload
    def update(
        self,
        /,
        config: _launch.LaunchConfig,
        kernel: _kernel.Kernel,
        *args: KernelArgument | _slot.Slot,
    ) -> None: ...
    @overload
    def update(
        self,
        change: _launch.LaunchConfig | _kernel.Kernel | dict[int, KernelArgument | _slot.Slot],
        /,
        **arguments: KernelArgument | _slot.Slot,
    ) -> None: ...
    @overload
    def update(
        self,
        /,
        *,
        config: _launch.LaunchConfig = ...,
        kernel: _kernel.Kernel = ...,
        **arguments: KernelArgument | _slot.Slot,
    ) -> None: ...
    @overload
    def update(self, /, event: _event.Event) -> None: ...
    @overload
    def update(self, /, graph: _graph.Graph) -> None: ...
    @overload
    def update(self, /, func: Callable[..., object], *args: Any) -> None:
        """Change the node's parameters for later launches. Launches under way are not affected.

        Replaced operands are released as soon as the last launch that uses them has completed.

        Parameters
        ----------
        *args, **kwargs
            By the node's kind:

            - memcpy: ``dst=``, ``src=`` or both, of the same size as before; both may have another
              size;
            - memset: ``dst``, ``value`` or both;
            - batch mem op: any of ``dst=``, ``value=`` of a write, and of ``src=``, ``value=``,
              ``condition=`` of a wait. The memory has as many bytes as before;
            - kernel: ``config, kernel, *args``, as for `Graph.launch`; or what changes: a
              configuration, a kernel (also ``config=``, ``kernel=``), arguments by name, as
              `Kernel.parameter_names` lists them, or a dict of arguments by position. The
              configuration's cluster, cooperative and priority cannot change. What `Graph.memset`
              and `Graph.memcpy` have made a kernel node, and captured fills and copies that are
              one, take what those take: ``dst``, ``value`` or both, and ``dst=``, ``src=`` or both,
              of any shape that one node can do;
            - host: ``func``, and its arguments if it has some;
            - event record, event wait: ``event``;
            - child graph: ``graph``, with the same nodes and edges as the embedded one, made in the
              same order;
            - semaphore signal, semaphore wait: ``semaphore=``, ``value=`` or both.

        Raises
        ------
        ValueError
            If this driver cannot make the change in an executable; the message says which.
        GraphUpdateError
            If a graph differs in more than parameters; the message names the node and what differs.
        TypeError
            If nodes of this kind cannot be updated.

        Notes
        -----
        Blocks while another thread is inside a launch of this executable. Updates of one executable
        can come one after the other: what an argument runs when it is converted must not wait for
        one in another thread.

        References
        ----------
        ``cuGraphExecMemcpyNodeSetParams``, ``cuGraphExecMemsetNodeSetParams``,
        ``cuGraphExecKernelNodeSetParams_v2``, ``cuGraphExecHostNodeSetParams``,
        ``cuGraphExecBatchMemOpNodeSetParams``, ``cuGraphExecChildGraphNodeSetParams``,
        ``cuGraphExecEventRecordNodeSetEvent``, ``cuGraphExecEventWaitNodeSetEvent``,
        ``cuGraphExecExternalSemaphoresSignalNodeSetParams``,
        ``cuGraphExecExternalSemaphoresWaitNodeSetParams``

        Examples
        --------
        >>> x = device.allocate(4, stream=stream)
        >>> graph = cudago.Graph(device)
        >>> node = graph.memcpy(x, b"abcd", name="upload")
        >>> step = graph.instantiate()
        >>> step["upload"].update(src=b"efgh")
        >>> step.launch(stream)
        >>> out = bytearray(4)
        >>> x.copy_to(out, stream=stream)
        >>> out
        bytearray(b'efgh')

        A kernel's arguments one by one:

        >>> source = 'extern "C" __global__ void set(int* x, int value) { *x = value; }'
        >>> kernel = cudago.Program(source).compile()["set"]
        >>> graph = cudago.Graph(device)
        >>> config = cudago.LaunchConfig(grid=1, block=1)
        >>> node = graph.launch(config, kernel, x, 7, name="set")
        >>> step = graph.instantiate()
        >>> step["set"].update(value=8)
        >>> step["set"].update({1: 9})
        >>> step["set"].params.args[1]
        9
        """

    @property
    def exec(self) -> _exec.GraphExec:
        """The executable."""

    @property
    def name(self) -> str:
        """Name of the `Node`."""

    @property
    def kind(self) -> str:
        """Kind of operation of the `Node`."""

    @property
    def _id(self) -> int: ...

class BoundLaunch:
    def __call__(self, stream: StreamLike) -> None:
        """Launch.

        Parameters
        ----------
        stream : Stream
            Stream that orders the launch.

        Notes
        -----
        Stream-ordered on `stream`, and after earlier calls. Captured as a kernel node.

        References
        ----------
        ``cuGraphLaunch``
        """

    def _open(self, step: GraphExec, node: ExecNode, /) -> None: ...
    @property
    def _step(self) -> GraphExec: ...
    @property
    def _node(self) -> _exec_node.ExecNode: ...

class Block:
    def _plan(
        self, todo: tuple[Any, ...], undo: tuple[Any, ...] | None, result: Any = ..., /
    ) -> None: ...
    def _entered(self) -> None: ...
    def _leaving(self, error: BaseException | None, /) -> None: ...
    def _left(self) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> Literal[False]: ...

class Switch(Block):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

@final
class Replay:
    def launch(self, arguments: tuple[Any, ...], /) -> bool: ...
    def clear(self) -> None: ...
    @property
    def launches(self) -> int: ...
    @property
    def used(self) -> int: ...

class GraphExec:
    def __call__(self, stream: StreamLike) -> None:
        """Launch the graph, as `launch` does.

        Parameters
        ----------
        stream : Stream
            Stream that orders the launch: a Stream, or an object with ``__cuda_stream__``.

        References
        ----------
        ``cuGraphLaunch``
        """

    def launch(self, stream: StreamLike) -> None:
        """Launch the graph.

        Parameters
        ----------
        stream : Stream
            Stream that orders the launch: a Stream, or an object with ``__cuda_stream__``.

        Notes
        -----
        Stream-ordered on `stream`, and after earlier launches of this executable. The GIL is held
        while few launches are outstanding on a stream of cudago and the graph has no Python
        callbacks.

        Operands stay alive until the launch has completed, even if they are closed or replaced
        meanwhile.

        While `stream` is capturing, what a launch would run now becomes one node of the captured
        graph, as by `Graph.embed`. That graph keeps the operands itself. Later updates of this
        executable do not reach it; nodes that are disabled now stay so in it. If the executable has
        been changed and has nodes that cannot be copied, such as embedded graphs, or allocates
        memory, or has conditional nodes, it is a ValueError or a CUDAError and the capture goes on.

        References
        ----------
        ``cuGraphLaunch``, ``cuGraphAddChildGraphNode``, ``cuStreamUpdateCaptureDependencies``

        Examples
        --------
        >>> x = device.allocate(4, stream=stream)
        >>> graph = cudago.Graph(device)
        >>> node = graph.memset(x, 7, name="fill")
        >>> with graph.instantiate() as step, stream.capture() as outer:
        ...     step.launch(stream)
        >>> [(node.kind, node.params.graph.nodes[0].name) for node in outer.nodes]
        [('child graph', 'fill')]
        """

    def upload(self, stream: StreamLike) -> None:
        """Upload the executable to its device, so that its first launch is as fast as the others.

        Parameters
        ----------
        stream : Stream
            Stream that orders the upload.

        Notes
        -----
        Stream-ordered on `stream`. Not allowed while `stream` is capturing.

        References
        ----------
        ``cuGraphUpload``
        """

    def bind(self, /, **objects: KernelArgument) -> None:
        """Exchange what slots hold, for later launches, in all nodes that use them.

        What they held before is released as soon as the last launch that uses it has completed.

        Parameters
        ----------
        **objects
            By the names that were given to `slot`: objects as the nodes take them.

        Raises
        ------
        TypeError
            If there is no such slot.
        ValueError
            If a node cannot use the object, such as one of another size. No node has changed then.

        See Also
        --------
        slot : Names an operand.
        ExecNode.update : Changes one node.

        Notes
        -----
        Blocks while another thread is inside a launch of this executable. A launch of another
        thread can come between the updates of two nodes.

        References
        ----------
        ``cuGraphExecMemcpyNodeSetParams``, ``cuGraphExecMemsetNodeSetParams``,
        ``cuGraphExecKernelNodeSetParams_v2``

        Examples
        --------
        >>> x = device.allocate(4, stream=stream)
        >>> graph = cudago.Graph(device)
        >>> node = graph.memcpy(x, cudago.slot("source", b"abcd"), name="up")
        >>> step = graph.instantiate()
        >>> step.bind(source=b"efgh")
        >>> step["up"].params.src
        b'efgh'
        """

    def close(self) -> None:
        """Close the executable; launches under way complete. Closing twice is fine.

        Notes
        -----
        The operands are released when the last launch has completed.

        References
        ----------
        ``cuGraphExecDestroy``
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""

    @property
    def launch_count(self) -> int:
        """Number of launches so far."""

    @property
    def _ordinal(self) -> int: ...
    @property
    def _uses(self) -> _slot.Uses | _slot.Pending | None: ...
    def _replace_uses(
        self, before: _slot.Uses | _slot.Pending | None, now: _slot.Uses | _slot.Pending | None, /
    ) -> bool: ...
    def _update_memcpy(
        self, node: int, dst: Any, src: Any, note: _slot.Pending | None, /
    ) -> None: ...
    def _update_memset(
        self, node: int, dst: Any, value: Any, note: _slot.Pending | None, /
    ) -> None: ...
    def _update_memop(self, node: int, memory: Any, value: Any, condition: int, /) -> None: ...
    def _update_semaphore(
        self, node: int, semaphore: Any, value: Any, waits: bool, is_own: bool, /
    ) -> None: ...
    def _update_kernel(
        self,
        node: int,
        config: LaunchConfig,
        kernel: Kernel,
        args: tuple[Any, ...],
        note: _slot.Pending | None,
        /,
    ) -> int: ...
    def _update_host(self, node: int, func: Callable[[], Any], /) -> None: ...
    def _update_event(self, node: int, event: _event.Event, /) -> None: ...
    def _update_child(self, node: int, graph: _graph.Graph, /) -> None: ...
    @property
    def _flags(self) -> int: ...
    def _update(self, graph: Graph, uses: _slot.Uses | None, now: _slot.Uses | None, /) -> bool: ...
    def _set_enabled(self, node: int, enabled: object, /) -> bool: ...
    def _change_all(
        self, changes: tuple[tuple[Any, ...], ...], before: tuple[tuple[Any, ...], ...], /
    ) -> None: ...
    def _call_inside(self, callable: Callable[[], object], /) -> None: ...
    def _in_python(self, more: int, /) -> None: ...
    def _is_enabled(self, node: int, /) -> bool: ...
    def _made_at(self, node: int, /) -> str | None: ...
    def _capture_into(self, stream: _stream.Stream, /) -> bool | str: ...
    def __getitem__(self, name: str, /) -> _exec_node.ExecNode: ...
    def _ask(self) -> None: ...  # raises what a launch would
    def _params(self, node: int, /) -> _Params: ...
    def _record(self, node: int, /) -> tuple[Any, ...] | None: ...
    def _edges(self) -> tuple[tuple[int, int], ...]: ...
    def _edge_data(self) -> tuple[tuple[int, int, str], ...]: ...
    def _nodes(self) -> tuple[tuple[int, str, str], ...]: ...
    def _find(self, name: object, /) -> tuple[tuple[int, str, str], ...]: ...
    def _node(self, number: int, name: str, kind: str, /) -> _exec_node.ExecNode: ...
    def _count(self) -> int: ...
    def _retained(self) -> tuple[tuple[Any, int, str, str, str], ...]: ...

# --- teardown -------------------------------------------------------------------------------------

class Finalizer:
    def __init__(
        self,
        obj: object,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        stream: StreamLike | None,
        /,
    ) -> None: ...
    def __call__(self) -> Any: ...
    def detach(
        self,
    ) -> tuple[Any, Callable[..., Any], tuple[Any, ...], dict[str, Any]] | None:
        """Cancel the finalizer, and return what it would have called.

        Returns
        -------
        tuple or None
            ``(obj, func, args, kwargs)`` if the finalizer was alive and the object still exists;
            the finalizer is now dead and holds none of them. Otherwise None, and nothing has
            changed: a function that waits for a stream because its object is gone will still run.
        """

    def peek(
        self,
    ) -> tuple[Any, Callable[..., Any], tuple[Any, ...], dict[str, Any]] | None:
        """Return what the finalizer will call.

        Returns
        -------
        tuple or None
            ``(obj, func, args, kwargs)`` if the finalizer is alive and the object still exists.
        """

    @property
    def alive(self) -> bool:
        """Whether the function has yet to be called."""

    @property
    def atexit(self) -> bool:
        """Whether the function runs at exit if not called before. Can be set; true by default."""

    @atexit.setter
    def atexit(self, value: bool, /) -> None: ...

# --- for the Python files -------------------------------------------------------------------------

def _set_class(name: str, cls: type, /) -> None: ...
def _set_condition(cls: type, /) -> None: ...
def _set_slot(cls: type, /) -> None: ...
def _no_slot(object: object, what: str, /) -> None: ...
def _replay(
    executable: GraphExec, place: int, given: tuple[Any, ...], values: Container[object], /
) -> Replay | None: ...
def _tick() -> int: ...
def _invalidated(cause: Callable[[], str], /) -> str: ...
def _watcher() -> object: ...
def _set_watcher(maker: Callable[[], object] | None, /) -> Callable[[], object] | None: ...
def _set_closed_error(cls: type[Exception], /) -> None: ...
def _open() -> None: ...
def _is_open() -> bool: ...
def _device_new(ordinal: int, /) -> _device.Device: ...
def _stream_new(device: Device, priority: int, blocking: bool, /) -> _stream.Stream: ...
def _stream_device(handle: int, /) -> int: ...
def _stream_wrap(device: Device, handle: int, owner: object, /) -> _stream.Stream: ...
def _green_new(device: Device, parts: bytes, /) -> _green.GreenContext: ...
def _event_new(device: Device, timing: bool, blocking: bool, ipc: bool, /) -> _event.Event: ...
def _semaphore_import(
    device: Device, fd: int, timeline: bool, /
) -> _semaphore.ExternalSemaphore: ...
def _external_import(
    device: Device, fd: int, size: int, dedicated: bool, /
) -> _external.ExternalMemory: ...
def _event_open(device: Device, handle: bytes, /) -> _event.Event: ...
def _buffer_adopt(
    address: int, size: int, stream: StreamLike, owner: Any, of: _buffers.Buffer = ..., /
) -> _buffers.Buffer: ...
def _tensor_through(
    owner: object, address: int, device: int, readonly: bool, dtype: str, shape: tuple[int, ...], /
) -> _tensor.Tensor: ...
def _give_late(device: Device, /) -> bool: ...
def _largest(count: int, /) -> list[tuple[int, int, str, int, str | None]]: ...
def _given(resource: object, buffer: object, nbytes: int, /) -> _buffers.Buffer: ...
def _buffer_attach(buffer: Buffer, object: object, /) -> None: ...
def _set_allocated(told: Callable[[Any, Any], None] | None, /) -> None: ...
def _all_buffers() -> tuple[Buffer, ...]: ...
def _set_dying(told: Callable[[Any], None] | None, /) -> None: ...
def _peer_access(device: Device, peer: Device, what: int, /) -> bool: ...
def _pin(obj: object, read_only: bool, /) -> _buffers.Buffer: ...
def _resource_default_pool(cls: type[_Resource], device: Device, /) -> _Resource: ...
def _resource_pool(
    cls: type[_Resource], device: Device, release_threshold: int, max_size: int, ipc: bool, /
) -> _Resource: ...
def _resource_imported(
    cls: type[_Resource], device: Device, pinned: bool, pool: int, leases: int, /
) -> _Resource: ...
def _files(files: CapsuleType, /) -> tuple[int, int]: ...
def _files_copy(files: CapsuleType, /) -> CapsuleType: ...
def _files_join(one: CapsuleType, other: CapsuleType, /) -> CapsuleType: ...
def _files_own(first: int, second: int, /) -> CapsuleType: ...
def _files_close(files: CapsuleType, /) -> None: ...
def _files_in_memory(name: str, size: int, /) -> CapsuleType: ...
def _pool_export(resource: MemoryResource, /) -> tuple[CapsuleType, bytes]: ...
def _buffer_export(buffer: Buffer, /) -> tuple[bytes, bytes, int, int, int]: ...
def _buffer_import(
    resource: MemoryResource,
    stream: StreamLike,
    data: bytes,
    pool: bytes,
    size: int,
    slot: int,
    /,
) -> _buffers.Buffer: ...
def _resource_host_pool(
    cls: type[_Resource],
    device: Device,
    release_threshold: int,
    max_size: int,
    managed: bool,
    numa: int,
    ipc: bool,
    /,
) -> _Resource: ...
def _resource_pinned(cls: type[_Resource], /) -> _Resource: ...
def _resource_managed(cls: type[_Resource], device: Device, /) -> _Resource: ...
def _resource_python(cls: type[_Resource], /) -> _Resource: ...
def _tallies(reset: bool, /) -> list[tuple[str, int, int, int]]: ...
def _resource_virtual(
    cls: type[_Resource], device: Device, reserve: int, peers: int, ipc: bool, /
) -> _Resource: ...
def _virtual_export(buffer: Buffer, /) -> tuple[list[tuple[int, int]], int] | None: ...
def _virtual_import(
    stream: StreamLike, pieces: list[tuple[int, int]], offset: int, size: int, /
) -> _buffers.Buffer: ...
def _xla_pack(
    kernel: Kernel,
    config: LaunchConfig,
    devices: tuple[int, ...],
    args: tuple[Any, ...],
    types: tuple[int, ...],
    names: tuple[str, ...],
    /,
) -> tuple[bytes, tuple[bool, ...]]: ...
def _xla_program(
    key: str,
    name: str,
    simulated: bool,
    devices: tuple[int, ...],
    n_arguments: int,
    arrays: tuple[tuple[int, int, int, int], ...],
    launches: tuple[tuple[Kernel, LaunchConfig, bytes, tuple[tuple[int, int], ...]], ...],
    /,
) -> CapsuleType: ...
def _xla_handler(platform: str, /) -> CapsuleType: ...
def _signal(
    stream: Stream, semaphore: Any, value: SupportsIndex | None, waits: bool, /
) -> None: ...
def _memop(stream: Stream, memory: Any, value: SupportsIndex, condition: int, /) -> None: ...
def _copy_batch(stream: StreamLike, dsts: list[Any], srcs: list[Any], /) -> None: ...
def _prefetch_batch(stream: StreamLike, buffers: list[Buffer], locations: list[int], /) -> None: ...
def _copy_box(
    stream: Stream,
    dst: Tensor | OpaqueArray | Operand,
    src: Tensor | OpaqueArray | Operand,
    box: tuple[int, ...],
    /,
) -> None: ...
def _operand(memory: Any, object: Any, writable: bool, /) -> Operand: ...
def _compile(
    device: Device, source: str | bytes, kind: str, target: str, options: str, /
) -> tuple[Handle, str, str, str]: ...
def _link(device: Device, target: str, options: str, /) -> tuple[Handle, str, str]: ...
def _code_cache(what: str, config: str, /) -> str: ...
def _code_from(kind: str, code: bytes, /) -> Handle: ...
def _code_from_state(state: bytes, /) -> Handle: ...
def _code_data(id: int, what: str, device: Device | None, /) -> bytes: ...
def _code_variable(id: int, name: str, device: Device, /) -> _buffers.Buffer: ...
def _kernel_new(owner: Any, code: int, name: str, device: Device, /) -> _kernel.Kernel: ...
def _config_new(
    cls: type[_Config],
    grid: Dims,
    block: Dims,
    cluster: Dims | None,
    shared_memory: int,
    cooperative: bool,
    priority: int | None,
    programmatic: bool,
    programmatic_event: _event.Event | None,
    trigger_at_block_start: bool,
    launch_completion_event: _event.Event | None,
    /,
) -> _Config: ...
def _tensor_map_new(
    cls: type[Descriptor],
    tensor: Tensor,
    kinds: tuple[int, ...],
    numbers: tuple[tuple[object, ...], ...],
    facts: tuple[object, ...],
    /,
) -> Descriptor: ...
def _array_level(
    cls: type[OpaqueArray],
    array: MipmappedArray,
    level: int,
    nbytes: int,
    facts: tuple[object, ...],
    /,
) -> OpaqueArray: ...
def _array_new(
    cls: type[OpaqueArray | MipmappedArray],
    stream: StreamLike,
    numbers: tuple[int, ...],
    nbytes: int,
    facts: tuple[object, ...],
    /,
) -> OpaqueArray | MipmappedArray: ...
def _array_texture_new(
    cls: type[Descriptor],
    array: OpaqueArray | MipmappedArray,
    kinds: tuple[int, ...],
    border: tuple[float, ...],
    facts: tuple[object, ...],
    levels: tuple[int | float, ...] = ...,
    /,
) -> Descriptor: ...
def _surface_new(
    cls: type[Descriptor], array: OpaqueArray, facts: tuple[object, ...], /
) -> Descriptor: ...
def _texture_new(
    cls: type[Descriptor],
    tensor: Tensor,
    numbers: tuple[int, ...],
    kinds: tuple[int, ...],
    border: tuple[float, ...],
    facts: tuple[object, ...],
    /,
) -> Descriptor: ...
def _graph_new(device: Device, /) -> _graph.Graph: ...
def _graph_from_handle(device: Device, handle: int, owner: object, /) -> _graph.Graph: ...
@overload
def _capture(stream: Stream, mode: int, /) -> AbstractContextManager[_graph.Graph, None]: ...
@overload
def _capture(
    stream: Stream, mode: int, result: _T, captured: Callable[[_graph.Graph], object], /
) -> AbstractContextManager[_T, None]: ...
def _capture_end(graph: Graph, discard: bool, /) -> None: ...
def _captures_open() -> int: ...
def _dtype(dtype: Any, /) -> tuple[str, int]: ...
def _dlpack_stats() -> tuple[
    tuple[int, ...], list[tuple[str, tuple[int, ...]]], tuple[int, ...]
]: ...
def _dlpack_trace(by: int, package: str, /) -> int: ...
def _dlpack_notes(
    after: int, until: int, /
) -> list[tuple[str | None, int, tuple[int, ...], str, int, bytes]]: ...
def _dlpack_fail_at(n: int, /) -> None: ...
def _collect_prove(phase: str, /, *args: object) -> None: ...
def _panic(text: str) -> NoReturn: ...
def _drain() -> None: ...
def _set_checks(names: str, /) -> str: ...
def _set_package(directory: str, contextlib: str, /) -> None: ...
def _site() -> str: ...
def _record_sites(on: object, /) -> bool: ...  # None: says only whether it is on
def _objects_of(kinds: tuple[type, ...], inner: type | None, /) -> list[Any]: ...
def _call_aside(function: Callable[[Any], object], argument: Any, /) -> None: ...
def _locked(lock: Any, function: Callable[..., _T], /, *args: Any) -> _T: ...
def _take_reports() -> str: ...
def _cancel_kernels() -> None: ...
def _fail_at_random(rate: float, /) -> None: ...
def _fail_next(call: str, n: int, code: int, /) -> None: ...
def _as_another(call: str, device: int, handle: int, /) -> int: ...
def _faults() -> str: ...
def _reaper_flush(ms: int, /) -> bool: ...
def _shutdown() -> None: ...
def _watch_forks() -> None: ...
def _check_interpreter() -> None: ...
def _check_usable() -> None: ...
