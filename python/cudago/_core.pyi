# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The native module: its types, with the documentation of what users call in C itself.

pyext/gendocs.py makes the documentation strings of the C files of this one: ``make gen``.

The classes are the bases of the public ones, which the Python files define and ``_set_class``
names. What begins with an underscore is for those files.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import EllipsisType, ModuleType
from typing import Any, NoReturn, Self, SupportsIndex, TypeVar, final, overload

import numpy as np
from typing_extensions import CapsuleType

from . import (
    _device,
    _event,
    _exec,
    _graph,
    _kernel,
    _launch,
    _memory,
    _program,
    _resource,
    _stream,
    _tensor,
)
from .typing import BufferLike, Dims, KernelArgument, MemoryLike, StreamLike, SupportsDLPack

_Resource = TypeVar("_Resource", bound=MemoryResource)
_Config = TypeVar("_Config", bound=LaunchConfig)

__version__: str
_gobind: ModuleType

# --- devices, streams, events ---------------------------------------------------------------------

class Device:
    def allocate(
        self, size: SupportsIndex, /, *, stream: StreamLike | None = None
    ) -> _memory.Buffer:
        """Allocate memory from `memory_resource`.

        Parameters
        ----------
        size : int
            Size in bytes. A buffer of no bytes has no address.
        stream : Stream
            Stream that orders the allocation, and later the free. Device memory needs one.

        Returns
        -------
        Buffer
            Of any content. Work on other streams must be ordered after `stream`.

        Raises
        ------
        TypeError
            If `size` is no integer, or `stream` is missing.
        ValueError
            If `size` is negative, `stream` is of another device or is capturing.
        OutOfMemoryError
            If the device has not enough memory.
        ClosedError
            If the memory resource or the stream is closed.

        Notes
        -----
        Stream-ordered on `stream`. Returns before completion, with the GIL held. Not allowed while
        `stream` is capturing, which goes on: allocate before the capture.

        The memory is freed on `stream`, after the stream that used it last, when the buffer, its
        views and everything else that holds it have gone.

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
            If work failed: the error may be that of any work queued earlier.
        ValueError
            If a stream is capturing.

        Notes
        -----
        Not stream-ordered: waits for all streams, those of other libraries too. Blocks with the GIL
        released; Ctrl-C ends the wait. Not allowed while a stream is capturing, which goes on if it
        was cudago that began the capture, and is spoilt otherwise.

        References
        ----------
        ``cuCtxSynchronize``

        Examples
        --------
        >>> device.sync()
        """

    @property
    def ordinal(self) -> int:
        """The device's number."""

    @property
    def memory_resource(self) -> _resource.MemoryResource:
        """What `allocate` allocates from: by default, the device's default pool. Can be set."""

    @memory_resource.setter
    def memory_resource(self, value: MemoryResource, /) -> None: ...
    @property
    def reads_pageable_memory(self) -> bool:
        """Whether kernels read ordinary host memory, so that a NumPy array may be an argument."""
    def _reset(self) -> None: ...

class Stream:
    def close(self) -> None:
        """Give the stream up. Closing twice is fine.

        Notes
        -----
        Not stream-ordered: work queued on the stream completes. Returns at once, with the GIL held.
        A stream that captures lives until the capture has ended; so does one that memory is still
        to be freed on, until that is done.

        References
        ----------
        ``cuStreamDestroy``
        """

    def sync(self) -> None:
        """Block until all work queued on the stream has completed.

        Raises
        ------
        CUDAError
            If work failed: the error may be that of any work queued earlier.
        ValueError
            If the stream is capturing.
        ClosedError
            If the stream is closed.

        Notes
        -----
        Not stream-ordered: it is the host that waits. Blocks with the GIL released; Ctrl-C ends the
        wait. Not allowed while the stream is capturing, which goes on.

        References
        ----------
        ``cuStreamSynchronize``

        Examples
        --------
        >>> stream.sync()
        >>> stream.is_done
        True
        """

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return ``(0, handle)``: the protocol by which libraries take each other's streams."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def is_done(self) -> bool:
        """Whether all work queued on the stream has completed. ValueError if it is capturing."""

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
    def _number(self) -> int: ...
    @property
    def _ordinal(self) -> int: ...
    @property
    def _id(self) -> int: ...
    def _record(self, event: _event.Event, /) -> _event.Event: ...
    def _wait_event(self, event: Event, /) -> None: ...

class Event:
    def close(self) -> None:
        """Give the event up. Closing twice is fine.

        Notes
        -----
        Not stream-ordered: what waits for the event still does. Returns at once, with the GIL held.
        During capture it changes nothing.

        References
        ----------
        ``cuEventDestroy``
        """

    def sync(self) -> None:
        """Block until the work that the event marks has completed.

        Raises
        ------
        CUDAError
            If work failed, or the event was last recorded in a capture.
        ClosedError
            If the event is closed.

        Notes
        -----
        Not stream-ordered: it is the host that waits. Blocks with the GIL released; Ctrl-C ends the
        wait. Not allowed for an event that a capture recorded: the driver refuses, and if the
        capture is still open, spoils it.

        An event that was never recorded is complete.

        References
        ----------
        ``cuEventSynchronize``

        Examples
        --------
        >>> stream.record().sync()
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def is_done(self) -> bool:
        """Whether the work that the event marks has completed."""

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""

    @property
    def handle(self) -> int:
        """The ``CUevent``, as an integer."""

    @property
    def _ordinal(self) -> int: ...
    def _elapsed_ms(self, start: Event, /) -> float: ...

# --- memory ---------------------------------------------------------------------------------------

class MemoryResource:
    def allocate(
        self, size: SupportsIndex, /, *, stream: StreamLike | None = None
    ) -> _memory.Buffer:
        """Allocate memory.

        Parameters
        ----------
        size : int
            Size in bytes. A buffer of no bytes has no address.
        stream : Stream, optional
            Stream that orders the allocation, and later the free. Device memory needs one. Other
            memory is usable at once; a stream makes its free wait for the stream's work.

        Returns
        -------
        Buffer
            Of any content. Stays valid after the resource is closed.

        Raises
        ------
        TypeError
            If `size` is no integer, or device memory was asked for without `stream`.
        ValueError
            If `size` is negative, `stream` is of another device, or device memory was asked for on
            a stream that is capturing.
        OutOfMemoryError
            If there is not enough memory.
        ClosedError
            If the resource or the stream is closed.

        Notes
        -----
        Stream-ordered on `stream` for device memory: returns before completion, with the GIL held.
        Other memory is not stream-ordered: blocks until it is there, with the GIL released. During
        capture only memory that is not stream-ordered can be allocated; the capture knows nothing
        of it.

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
        """Give the resource up; its buffers stay valid. Closing twice is fine.

        Notes
        -----
        Not stream-ordered. Returns at once, with the GIL held. During capture it changes nothing.

        References
        ----------
        ``cuMemPoolDestroy``
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""

    @property
    def _ordinal(self) -> int | None: ...
    def _stat(self, attribute: int, /) -> int: ...
    def _trim(self, keep: int, /) -> None: ...
    def _peers(self) -> list[int]: ...
    def _set_peer(self, peer: Device, allowed: bool, /) -> None: ...

class Buffer:
    def copy_from(self, src: MemoryLike, /, *, stream: StreamLike) -> None:
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
            If `src` does not have ``self.size`` bytes.
        BufferError
            If `src` is not C-contiguous.
        TypeError
            If `src` has no memory, or `stream` is no stream.
        ClosedError
            If either side or the stream is closed.
        CUDAError
            If the driver refuses the copy.

        Notes
        -----
        Stream-ordered on `stream`. Returns before completion if `src` is device, pinned or managed
        memory; blocks until pageable memory has been read, with the GIL released. During capture it
        adds a memcpy node, which keeps both sides and reads `src` anew at each launch.

        A tensor of another library is read after what that library has queued on its current
        stream.

        References
        ----------
        ``cuMemcpyAsync``

        Examples
        --------
        >>> buffer = device.allocate(4, stream=stream)
        >>> buffer.copy_from(b"abcd", stream=stream)
        """

    def copy_to(self, dst: MemoryLike, /, *, stream: StreamLike) -> None:
        """Copy the bytes of this buffer to somewhere else.

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
            If `dst` does not have ``self.size`` bytes.
        BufferError
            If `dst` is not C-contiguous, or read-only.
        TypeError
            If `dst` has no memory, or `stream` is no stream.
        ClosedError
            If either side or the stream is closed.
        CUDAError
            If the driver refuses the copy.

        Notes
        -----
        Stream-ordered on `stream`. Returns before completion if `dst` is device, pinned or managed
        memory: `Stream.sync` before the host reads it; blocks until pageable memory has been
        written, with the GIL released. During capture it adds a memcpy node, which keeps both sides
        and writes `dst` at each launch.

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

    def fill(self, value: int | BufferLike | np.generic, /, *, stream: StreamLike) -> None:
        """Fill the buffer with a value.

        Parameters
        ----------
        value : int or bytes
            Of 1, 2 or 4 bytes, little-endian. An int has the fewest that it fits:
            ``b"\\x01\\0\\0\\0"`` or ``numpy.int32(1)`` sets every fourth byte, ``1`` every one.
        stream : Stream
            Stream that orders the fill.

        Raises
        ------
        ValueError
            If `value` has another length, or one that does not divide ``self.size``.
        OverflowError
            If an int does not fit 4 bytes.
        TypeError
            If `value` is neither, or `stream` is no stream.
        ClosedError
            If the buffer or the stream is closed.

        Notes
        -----
        Stream-ordered on `stream`. Returns before completion; releases the GIL. During capture it
        adds a memset node, which keeps the buffer.

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
        """Free memory that a launch of a graph has allocated.

        Only for `Node.buffer`, and where no node of the graph frees it. The next launch allocates
        it again. Other memory needs no such call: it goes when nobody holds it any more.

        Parameters
        ----------
        stream : Stream
            Stream that orders the free: it must come after all that uses the memory.

        Raises
        ------
        TypeError
            If the buffer is not memory of a graph.
        ValueError
            If the buffer is a view of some of it, or `stream` is capturing.
        ClosedError
            If the buffer or the stream is closed.
        CUDAError
            If the memory is not allocated now: no launch has allocated it since it was freed.

        Notes
        -----
        Stream-ordered on `stream`. Returns before completion, with the GIL held. Not allowed while
        `stream` is capturing, which goes on: use `Graph.free`.

        References
        ----------
        ``cuMemFreeAsync``

        Examples
        --------
        >>> graph = cudago.Graph(device)
        >>> made = graph.allocate(4)
        >>> node = made.memset(made.buffer, 7)
        >>> step = graph.instantiate()
        >>> step.launch(stream)
        >>> made.buffer.view("u1").numpy(stream=stream)
        array([7, 7, 7, 7], dtype=uint8)
        >>> made.buffer.free(stream=stream)
        >>> step.launch(stream)
        >>> made.buffer.free(stream=stream)
        """

    def grow(self, size: SupportsIndex, /) -> None:
        """Make the buffer larger where it is, up to a new size.

        The address and the content stay. Pointers, views, tensors and graphs made before stay
        valid; a pointer of this buffer may go up to its new end.

        Parameters
        ----------
        size : int
            New size in bytes, not less than ``self.size``. What is new has any content.

        Raises
        ------
        TypeError
            If the buffer is not the one that a `VirtualMemoryResource` allocated: another kind of
            memory, or a view.
        ValueError
            If `size` is less than the buffer has.
        OutOfMemoryError
            If there is not enough memory, or the addresses behind what was reserved are taken. The
            buffer is as it was.
        ClosedError
            If the buffer is closed.

        Notes
        -----
        Not stream-ordered: blocks until the memory is there, with the GIL released; the new bytes
        can then be used on every stream. During capture it changes nothing.

        References
        ----------
        ``cuMemCreate``, ``cuMemMap``, ``cuMemSetAccess``, ``cuMemAddressReserve``

        Examples
        --------
        >>> big = cudago.VirtualMemoryResource(device).allocate(1 << 21, stream=stream)
        >>> p = big.ptr
        >>> big.grow(1 << 22)
        >>> big.ptr == p, big.size
        (True, 4194304)
        """

    def view(
        self, dtype: Any, shape: Dims | None = None, strides: Dims | None = None
    ) -> _tensor.Tensor:
        """Make a tensor over the bytes of this buffer.

        Parameters
        ----------
        dtype : dtype_like
            Element type: a name ("float32", "bfloat16"), a NumPy or PyTorch dtype, or a string such
            as "f4".
        shape : int or sequence of int, optional
            Sizes of the dimensions, of which one may be -1; by default one dimension of all
            elements.
        strides : int or sequence of int, optional
            Distance between neighbours in each dimension, in elements; by default row-major.

        Returns
        -------
        Tensor
            Over the same memory, which it keeps alive.

        Raises
        ------
        TypeError
            If `dtype` is not an element type.
        ValueError
            If the tensor would not fit the buffer.
        ClosedError
            If the buffer is closed.

        Examples
        --------
        >>> device.allocate(24, stream=stream).view("f4", (2, -1)).shape
        (2, 3)
        """

    def close(self) -> None:
        """Drop this reference to the memory, which goes with the last. Closing twice is fine.

        Raises
        ------
        BufferError
            If a Python buffer of the memory, such as a NumPy array over it, is in use.

        Notes
        -----
        Stream-ordered: the memory is freed after the work queued on its stream. Returns at once,
        with the GIL held. During capture it changes nothing: a free that the capture would record
        waits until it has ended.

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
        """Export the bytes as a DLPack capsule, as the array API standard has it."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device type and number. Simulated device memory is host memory here."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: slice, /) -> _memory.Buffer: ...
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
        """Where the memory is: "device", "pinned", "managed", "host", "foreign" or "python"."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The bytes in Numba's CUDA array interface, version 3. Only on NVIDIA's driver."""

    @property
    def _ordinal(self) -> int | None: ...
    @property
    def _is_whole(self) -> bool: ...
    def _at(self, offset: int, size: int, /) -> _memory.Buffer: ...
    def _advise(self, advice: int, location: int, /) -> None: ...
    def _prefetch(self, location: int, stream: StreamLike, /) -> None: ...
    def _range(self) -> tuple[int, int, tuple[int, ...], int]: ...

@final
class Pointer:
    """A checked address.

    Arithmetic stays inside the buffer, which the pointer keeps: ``p + 16`` and ``p - 16`` are
    pointers, ``p - q`` is the bytes between two into one allocation. One past the end is a pointer,
    as in C. ``int(p)`` is the address. Made by `Buffer.ptr` and `Tensor.ptr`; a kernel takes it as
    an argument, and a copy as everything from there to the buffer's end.

    Raises
    ------
    IndexError
        If arithmetic would leave the buffer.
    ValueError
        If pointers into different allocations are subtracted.
    ClosedError
        If the buffer is closed.

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
    def buffer(self) -> _memory.Buffer:
        """The buffer that the pointer points into, and keeps."""

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
        """Drop this view's hold on the memory, which goes with the last. Closing twice is fine.

        Raises
        ------
        BufferError
            If a Python buffer of the memory, such as a NumPy array over it, is in use.
        """

    def reshape(self, *shape: Any) -> _tensor.Tensor:
        """Return the same elements in another shape, without a copy.

        Parameters
        ----------
        *shape : int, or one sequence of int
            Sizes of the dimensions, of which one may be -1.

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
        ClosedError
            If the tensor is closed.

        Examples
        --------
        >>> cudago.empty(6, stream=stream).reshape(2, -1).shape
        (2, 3)
        """

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Export as a DLPack capsule, as the array API standard has it."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device type and number. Simulated device memory is host memory here."""

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
        """Distance between neighbours in each dimension, in elements."""

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
        """Bytes of all elements, gaps not counted."""

    @property
    def itemsize(self) -> int:
        """Bytes of one element, rounded up."""

    @property
    def handle(self) -> int:
        """Address of the first element, as an integer."""

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
    def T(self) -> _tensor.Tensor:
        """The tensor with its dimensions in reverse order."""

    @property
    def buffer(self) -> _memory.Buffer:
        """The tensor's bytes as a Buffer. BufferError if the tensor is not contiguous."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Numba's CUDA array interface, version 3. Only for memory of NVIDIA's driver."""

    __dlpack_c_exchange_api__: CapsuleType
    __c_dlpack_exchange_api__: CapsuleType
    @property
    def _span(self) -> tuple[_memory.Buffer, int]: ...
    @property
    def _ordinal(self) -> int | None: ...
    @property
    def _memory(self) -> tuple[int, int, int, int, int]: ...

def from_dlpack(
    obj: SupportsDLPack | CapsuleType,
    /,
    *,
    stream: StreamLike | int | None = None,
    copy: bool | None = None,
) -> _tensor.Tensor:
    """Share the memory of another library's tensor.

    Parameters
    ----------
    obj : object
        Anything with ``__dlpack__`` and ``__dlpack_device__``: a PyTorch, NumPy, CuPy or JAX array,
        a Tensor, or a DLPack capsule. Types with DLPack's C exchange table, such as PyTorch's, are
        taken through it, which is faster.
    stream : Stream or int, optional
        Stream on which the tensor will be used, as a Stream, anything with ``__cuda_stream__`` or a
        number; by default the legacy default stream. The producer makes it wait for its pending
        work; -1 says that nothing need wait. Without meaning for host memory.
    copy : bool, optional
        True asks the producer for a copy, False forbids one. By default nothing is copied unless
        the producer must.

    Returns
    -------
    Tensor
        Over the same memory. The producer's object lives as long as the Tensor or anything that was
        made of it.

    Raises
    ------
    BufferError
        If the tensor cannot be described: an unknown element type or device, another major version
        of DLPack, a capsule that was consumed before.
    TypeError
        If `obj` does not take part in DLPack.

    See Also
    --------
    to_torch : The other way, to PyTorch.

    Notes
    -----
    Tensors that say read-only stay so. Those of libraries from before DLPack 1.0 cannot say it and
    come out writable. The exchange table does not look at ``requires_grad``: writing through a
    Tensor is not seen by autograd.

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
    """Share a Tensor's memory with PyTorch, the fast way.

    Parameters
    ----------
    tensor : Tensor
        Pinned and simulated memory becomes a tensor on PyTorch's device "cpu", managed memory one
        on "cuda".

    Returns
    -------
    torch.Tensor
        Over the same memory, which lives as long as it.

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
    from_dlpack : The other way.

    Notes
    -----
    Goes through DLPack's C exchange table where PyTorch has one (2.10 and newer), else through
    ``torch.from_dlpack``. PyTorch's current stream waits for the work that is pending on the
    tensor; for memory that PyTorch reads on the host, the call blocks until that work has ended.
    PyTorch has no read-only tensors: do not write to one made of read-only memory.

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

    @property
    def object_code(self) -> _program.ObjectCode:
        """The ObjectCode that holds the kernel, and that the kernel keeps."""

    def _parameters(self) -> list[tuple[str, int, int]]: ...
    def _attribute(self, device: Device, attribute: int, /) -> int: ...
    def _set_attribute(self, device: Device, attribute: int, value: int, /) -> None: ...
    def _max_active_blocks(self, device: Device, block: int, shared: int, /) -> int: ...

class LaunchConfig:
    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks in x, y and z."""

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of a block in x, y and z."""

    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """Blocks of a cluster in x, y and z, or None."""

    @property
    def shared_memory(self) -> int:
        """Dynamic shared memory of a block, in bytes."""

    @property
    def cooperative(self) -> bool:
        """Whether all blocks run at the same time."""

    @property
    def priority(self) -> int | None:
        """Priority of the launch, or None."""

def launch(
    stream: StreamLike,
    config: _launch.LaunchConfig,
    kernel: _kernel.Kernel,
    /,
    *args: KernelArgument,
) -> None:
    """Launch a kernel.

    Parameters
    ----------
    stream : Stream
        Stream that orders the launch: a Stream, or anything with ``__cuda_stream__``.
    config : LaunchConfig
        The shape of the launch.
    kernel : Kernel
        The kernel. It is loaded on the stream's device if it was not yet.
    *args
        One for each parameter, in order:

        - for a pointer: a Buffer or a view of one, a Pointer, a Tensor, any object with
          ``__dlpack__`` or ``__cuda_array_interface__``, any object with the buffer protocol whose
          memory is pinned, managed, or on a device that reads pageable memory, an address, or None
          for a null pointer;
        - for a number: a Python number or a NumPy scalar;
        - for a struct: ``bytes`` or a NumPy structured scalar of its size.

    Raises
    ------
    TypeError
        If there are too many arguments or too few, or one does not suit its parameter. The text
        names the parameter, what it wants and what it got.
    OverflowError
        If a number does not fit its parameter.
    ValueError
        If the shape exceeds a limit of the device or the kernel, or an argument is on another
        device.
    BufferError
        If an argument's memory is not C-contiguous.
    ClosedError
        If the stream or an argument is closed.
    OutOfMemoryError, CUDAError
        If the driver refuses.

    See Also
    --------
    Graph.launch : Adds the launch to a graph instead.

    Notes
    -----
    Stream-ordered on `stream`. Returns before completion; the GIL is held on streams of cudago
    while few launches are outstanding, and released otherwise. During capture it adds a kernel
    node, which keeps the kernel and every argument that has memory.

    Everything is checked before anything is launched. Memory of cudago can be dropped after the
    call: it is freed in the order of the streams. Host memory and tensors of other libraries are
    kept until the launch has ended. An error of the kernel itself comes out of a later call.

    References
    ----------
    ``cuLaunchKernelEx``

    Examples
    --------
    >>> source = 'extern "C" __global__ void set(int* x, int value) { *x = value; }'
    >>> kernel = cudago.Program(source).compile()["set"]
    >>> x = cudago.empty(1, "int32", stream=stream)
    >>> cudago.launch(stream, cudago.LaunchConfig(grid=1, block=1), kernel, x, 7)
    >>> x.numpy(stream=stream)
    array([7], dtype=int32)
    """

# --- graphs ---------------------------------------------------------------------------------------

@final
class Operand:
    @property
    def object(self) -> Any: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def address(self) -> int: ...

class Graph:
    def close(self) -> None:
        """Give the graph up; executables made from it go on. Closing twice is fine.

        Raises
        ------
        ValueError
            If the graph is still being captured.

        Notes
        -----
        Not stream-ordered: nothing waits for a graph. Returns at once, with the GIL held. During
        capture of other graphs it changes nothing. What only this graph kept is released.

        References
        ----------
        ``cuGraphDestroy``
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""

    @property
    def _ordinal(self) -> int: ...
    @property
    def _body_id(self) -> int: ...
    def _add_memcpy(
        self, deps: tuple[int, ...], dst: Any, src: Any, name: str | None, /
    ) -> int: ...
    def _add_memset(
        self, deps: tuple[int, ...], dst: Any, value: Any, name: str | None, /
    ) -> int: ...
    def _add_kernel(
        self,
        deps: tuple[int, ...],
        config: LaunchConfig,
        kernel: Kernel,
        args: tuple[Any, ...],
        name: str | None,
        /,
    ) -> int: ...
    def _add_host(
        self, deps: tuple[int, ...], func: Callable[[], Any], name: str | None, /
    ) -> int: ...
    def _add_empty(self, deps: tuple[int, ...], name: str | None, /) -> int: ...
    def _add_child(self, deps: tuple[int, ...], graph: Graph, name: str | None, /) -> int: ...
    def _add_event(
        self, deps: tuple[int, ...], event: Any, record: bool, name: str | None, /
    ) -> int: ...
    def _add_alloc(self, deps: tuple[int, ...], size: int, name: str | None, /) -> int: ...
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
    def _buffer(self, node: int, /) -> _memory.Buffer: ...
    def _check(self) -> None: ...
    def _nodes(self) -> tuple[tuple[int, int, str, str], ...]: ...
    def _node_row(self, node: int, /) -> tuple[int, int, str, str]: ...
    def _find(self, name: object, /) -> tuple[int, int, str, str] | None: ...
    def _count(self) -> int: ...
    def _edges(self) -> tuple[tuple[int, int], ...]: ...
    def _dependencies(self, node: int, /) -> tuple[tuple[int], ...]: ...
    def _dependents(self, node: int, /) -> tuple[tuple[int], ...]: ...
    def _retained(self, node: int, /) -> tuple[tuple[Any, int, str, str, str], ...]: ...
    def _dot(self) -> str: ...
    def _clone(self) -> _graph.Graph: ...
    def _instantiate(self, flags: int, /) -> _exec.GraphExec: ...

class GraphExec:
    def launch(self, stream: StreamLike, /) -> None:
        """Launch the graph.

        Parameters
        ----------
        stream : Stream
            Stream that orders the launch: a Stream, or anything with ``__cuda_stream__``.

        Raises
        ------
        ValueError
            If the stream is of another device, or capturing.
        ClosedError
            If the executable or the stream is closed.
        OutOfMemoryError, CUDAError
            If the driver refuses.

        Notes
        -----
        Stream-ordered on `stream`, and after earlier launches of this executable. Returns before
        completion; the GIL is held on streams of cudago while few launches are outstanding and the
        graph calls no Python, and released otherwise. Not allowed while `stream` is capturing,
        which goes on: `Graph.embed` the graph instead.

        What the graph keeps stays alive until the launch has ended, whatever is closed or updated
        meanwhile. A launch costs nothing for that.

        References
        ----------
        ``cuGraphLaunch``

        Examples
        --------
        >>> graph = cudago.Graph(device)
        >>> node = graph.memset(device.allocate(4, stream=stream), 7)
        >>> step = graph.instantiate()
        >>> step.launch(stream)
        >>> step.launch_count
        1
        """

    def upload(self, stream: StreamLike, /) -> None:
        """Ready the executable on its device, so that its first launch is as quick as others.

        Parameters
        ----------
        stream : Stream
            Stream that orders the upload.

        Raises
        ------
        ClosedError
            If the executable or the stream is closed.
        CUDAError
            If the driver refuses.

        Notes
        -----
        Stream-ordered on `stream`. Returns before completion; releases the GIL. Not allowed while
        `stream` is capturing.

        References
        ----------
        ``cuGraphUpload``
        """

    def close(self) -> None:
        """Give the executable up; launches under way complete. Closing twice is fine.

        Notes
        -----
        Not stream-ordered. Returns at once, with the GIL held; what the executable kept is released
        when its last launch has ended. During capture it changes nothing.

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
        """How often the executable was launched."""

    @property
    def _ordinal(self) -> int: ...
    def _update_memcpy(self, node: int, dst: Any, src: Any, /) -> None: ...
    def _update_memset(self, node: int, dst: Any, value: Any, /) -> None: ...
    def _update_kernel(
        self, node: int, config: LaunchConfig, kernel: Kernel, args: tuple[Any, ...], /
    ) -> int: ...
    def _update_host(self, node: int, func: Callable[[], Any], /) -> None: ...
    def _set_enabled(self, node: int, enabled: bool, /) -> None: ...
    def _nodes(self) -> tuple[tuple[int, str, str], ...]: ...
    def _find(self, name: object, /) -> tuple[int, str, str] | None: ...
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
        """Give up what was to be called.

        Returns
        -------
        tuple or None
            ``(obj, func, args, kwargs)`` if the finalizer was alive and the object is; it is dead
            now, and has let go of all four. None otherwise, and then nothing has changed: a
            function that waits for a stream, since the object has gone, will run.
        """

    def peek(
        self,
    ) -> tuple[Any, Callable[..., Any], tuple[Any, ...], dict[str, Any]] | None:
        """Look at what is to be called.

        Returns
        -------
        tuple or None
            ``(obj, func, args, kwargs)`` if the finalizer is alive and the object is.
        """

    @property
    def alive(self) -> bool:
        """Whether the function has yet to be called."""

    @property
    def atexit(self) -> bool:
        """Whether the function runs at exit if it did not before. Can be set; true by default."""

    @atexit.setter
    def atexit(self, value: bool, /) -> None: ...

# --- for the Python files -------------------------------------------------------------------------

def _set_class(name: str, cls: type, /) -> None: ...
def _set_closed_error(cls: type[Exception], /) -> None: ...
def _open() -> None: ...
def _is_open() -> bool: ...
def _device_new(ordinal: int, /) -> _device.Device: ...
def _stream_new(device: Device, priority: int, /) -> _stream.Stream: ...
def _stream_wrap(device: Device, handle: int, owner: object, /) -> _stream.Stream: ...
def _event_new(device: Device, timing: bool, blocking: bool, /) -> _event.Event: ...
def _peer_access(device: Device, peer: Device, what: int, /) -> bool: ...
def _pin(obj: object, read_only: bool, /) -> _memory.Buffer: ...
def _resource_default_pool(cls: type[_Resource], device: Device, /) -> _Resource: ...
def _resource_pool(
    cls: type[_Resource], device: Device, release_threshold: int, max_size: int, /
) -> _Resource: ...
def _resource_pinned(cls: type[_Resource], /) -> _Resource: ...
def _resource_managed(cls: type[_Resource], device: Device, /) -> _Resource: ...
def _resource_virtual(
    cls: type[_Resource], device: Device, reserve: int, peers: int, /
) -> _Resource: ...
def _compile(
    device: Device, source: str, kind: str, target: str, options: str, /
) -> tuple[Handle, str, str]: ...
def _code_from(kind: str, code: bytes, /) -> Handle: ...
def _code_data(id: int, what: str, device: Device | None, /) -> bytes: ...
def _kernel_new(owner: Any, code: int, name: str, device: Device, /) -> _kernel.Kernel: ...
def _config_new(
    cls: type[_Config],
    grid: Dims,
    block: Dims,
    cluster: Dims | None,
    shared_memory: int,
    cooperative: bool,
    priority: int | None,
    /,
) -> _Config: ...
def _graph_new(device: Device, /) -> _graph.Graph: ...
def _capture(stream: Stream, mode: int, /) -> AbstractContextManager[_graph.Graph, None]: ...
def _capture_end(graph: Graph, discard: bool, /) -> None: ...
def _dtype(dtype: Any, /) -> tuple[str, int]: ...
def _dlpack_stats() -> tuple[int, int, int, int, tuple[int, ...]]: ...
def _dlpack_fail_at(n: int, /) -> None: ...
def _collect_prove(phase: str, /, *args: object) -> None: ...
def _panic(text: str) -> NoReturn: ...
def _drain() -> None: ...
def _set_checks(names: str, /) -> str: ...
def _set_package(directory: str, /) -> None: ...
def _take_reports() -> str: ...
def _cancel_kernels() -> None: ...
def _fail_at_random(rate: float, /) -> None: ...
def _fail_next(call: str, n: int, code: int, /) -> None: ...
def _faults() -> str: ...
def _reaper_flush(ms: int, /) -> bool: ...
def _shutdown() -> None: ...
def _after_fork() -> None: ...
def _watch_forks() -> None: ...
def _check_interpreter() -> None: ...
