# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Allocators of other libraries as memory resources, and memory resources as theirs.

The other libraries are not needed before an allocator of theirs is made.
"""

from __future__ import annotations

import importlib
import inspect
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import ref

from . import _core
from ._finalize import finalize
from ._memory.buffer import Buffer
from ._memory.resource import DeviceMemoryResource, MemoryResource
from ._native import number_text, whole
from ._ordinal import device_at
from ._stream.stream import Stream
from .errors import ClosedError, OutOfMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._memory.device import Device
    from .typing import StreamLike

__all__ = ["ForeignMemoryResource", "for_cupy", "for_rmm"]


class ForeignMemoryResource(MemoryResource):
    """Memory from an allocator of another library.

    Parameters
    ----------
    allocator : object
        One of

        * a pool of CuPy, such as ``cupy.cuda.MemoryPool()``, or a function that allocates for CuPy;
        * a memory resource of RMM, such as ``rmm.mr.get_current_device_resource()``;
        * any object with ``allocate(nbytes)`` or ``allocate(nbytes, stream)``. It returns an object
          that keeps the memory and has an attribute ``ptr`` or ``handle``; or an address, and then
          the allocator has ``deallocate(ptr, nbytes)`` or ``deallocate(ptr, nbytes, stream)`` too.
          A parameter ``stream`` may be one that is given by name only.
    device : Device, optional
        Device that the allocator gives memory of; by default that of each stream.

    Attributes
    ----------
    allocator : object
        As given.

    See Also
    --------
    Buffer.from_handle : Wraps memory that is there already.

    Notes
    -----
    Memory goes back to the allocator when its last user has let go: at once, in the order of the
    stream that it was allocated on, to CuPy, RMM and allocators that take a stream; to others, also
    where only ``allocate`` or ``deallocate`` takes one, when the work of that stream has completed,
    so that they may reuse it anywhere.

    An allocation on a stream that is capturing is not allowed: the other library does not know what
    a graph keeps. Closing the resource does nothing to the allocator.

    Examples
    --------
    >>> class Counting:  # stands for another library's allocator
    ...     made = 0
    ...
    ...     def allocate(self, nbytes):
    ...         self.made += 1
    ...         return device.allocate(nbytes, stream=stream)
    >>> counting = Counting()
    >>> resource = cudago.allocators.ForeignMemoryResource(counting)
    >>> cudago.zeros(4, "f4", stream=stream, resource=resource).numpy(stream=stream)
    array([0., 0., 0., 0.], dtype=float32)
    >>> counting.made
    1
    """

    __slots__ = ("_allocate", "_on", "allocator")
    _allocate: Callable[[int, Stream], tuple[int, object]]
    allocator: Any

    def __init__(self, allocator: Any, *, device: Device | None = None) -> None:
        if device is not None and not isinstance(device, _core.Device):
            raise TypeError(f"device must be a Device, not {type(device).__name__}")
        self._allocate = _way(allocator)
        self._on = device
        self.allocator = allocator

    @property  # type: ignore[misc]  # which the user cannot set
    def device(self) -> Device | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The device, if one was given."""
        return self._on

    def allocate(self, size: Any, /, *, stream: StreamLike | None = None) -> Buffer:
        """Allocate memory from the other library.

        Parameters
        ----------
        size : int
            Size in bytes.
        stream : Stream
            Stream in whose order the memory is allocated, and freed.

        Returns
        -------
        Buffer
            The memory, in which anything may be.

        Raises
        ------
        ValueError
            If the stream is of another device, or is capturing; or if what the allocator gave is
            not memory of the device.
        TypeError
            If the allocator gave something else than memory.
        """
        if self.is_closed:
            raise ClosedError("memory resource is closed")
        if stream is None:
            raise TypeError("allocate() needs stream=: the memory is used in a stream's order")
        on = stream if isinstance(stream, Stream) else Stream(stream)
        if self._on is not None and on.device != self._on:
            raise ValueError(f"the memory is on {self._on!r}, the stream on {on.device!r}")
        if on.is_capturing:
            raise ValueError(
                "another library cannot allocate on a stream that is capturing: allocate before "
                "the capture, or from a DeviceMemoryResource"
            )
        nbytes = whole(size, "size")
        if nbytes < 0:
            raise ValueError(f"size in bytes must not be negative, got {number_text(nbytes)}")
        if nbytes == 0:  # allocators differ in what they make of it
            return DeviceMemoryResource(on.device).allocate(0, stream=on)
        ptr, owner = self._allocate(nbytes, on)
        return Buffer.from_handle(ptr, nbytes, owner=owner, stream=on)

    def __repr__(self) -> str:
        if not hasattr(self, "allocator"):  # its constructor has raised
            return "<cudago.allocators.ForeignMemoryResource: not made>"
        state = ": closed" if self.is_closed else ""
        return f"<cudago.allocators.ForeignMemoryResource over {self.allocator!r}{state}>"


# --- how to allocate: address and owner ----------------------------------------------------------


def _way(allocator: Any) -> Callable[[int, Stream], tuple[int, object]]:
    """Return the function that allocates from an allocator."""
    if callable(getattr(allocator, "malloc", None)):
        return _CuPy(allocator.malloc)
    if callable(getattr(allocator, "allocate", None)):
        if type(allocator).__module__.partition(".")[0] == "rmm":
            return _InOrder(allocator, importlib.import_module("rmm.pylibrmm.stream").Stream)
        if _takes_stream(allocator.allocate):
            return _InOrder(allocator, _same)
        return _Anytime(allocator)
    if callable(allocator):
        return _CuPy(allocator)
    raise TypeError(
        "allocator must be a pool or an allocator of CuPy, a memory resource of RMM, or have "
        f"allocate(nbytes), not {type(allocator).__name__}"
    )


def _same(stream: Stream) -> Stream:
    return stream


def _stream_parameter(function: Callable[..., Any] | None) -> inspect.Parameter | None:
    try:
        return inspect.signature(function).parameters.get("stream") if function else None
    except (TypeError, ValueError):  # of a function that does not say
        return None


def _takes_stream(function: Callable[..., Any]) -> bool:
    return _stream_parameter(function) is not None


def _stream_last(function: Any) -> Any:
    """Return a function that is given the stream last; the given one may take it by name only."""
    parameter = _stream_parameter(function)
    if parameter is None or parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        return function

    def by_name(*args: Any) -> Any:
        return function(*args[:-1], stream=args[-1])

    return by_name


def _knows_no_stream(deallocate: Any) -> bool:
    """Whether a function takes an address and a size, and no stream; some do not say."""
    if deallocate is None or _takes_stream(deallocate):
        return False
    try:
        inspect.signature(deallocate).bind(0, 0)
    except (TypeError, ValueError):
        return False
    return True


def _is_address(given: object) -> bool:
    """Whether this is a number, of whatever type, and not an object that keeps memory."""
    keeps = hasattr(given, "ptr") or hasattr(given, "handle")
    return isinstance(given, int) or (hasattr(type(given), "__index__") and not keeps)


def _address(given: object) -> int:
    """Return the address that an object of another library has."""
    for name in ("ptr", "handle"):
        value = getattr(given, name, None)
        if value is not None:
            return int(value)
    raise TypeError(
        "the allocator must return an address, or an object with an attribute ptr or handle, not "
        f"{type(given).__name__}"
    )


class _CuPy:
    """CuPy's allocators use its current stream, and its memory goes back in the order of that."""

    __slots__ = ("malloc",)

    def __init__(self, malloc: Callable[[int], Any]) -> None:
        self.malloc = malloc

    def __call__(self, nbytes: int, stream: Stream) -> tuple[int, object]:
        cuda = importlib.import_module("cupy").cuda
        ordinal = stream.device.ordinal
        with cuda.Device(ordinal):
            # CuPy's `with stream` goes back to the `with` before it, not to a stream in use().
            before = cuda.get_current_stream()
            _cupy_stream(cuda, stream, ordinal).use()
            try:
                memory = self.malloc(nbytes)
            finally:
                before.use()
        return _address(memory), memory


def _cupy_stream(cuda: Any, stream: Stream, ordinal: int) -> Any:
    """Return a stream of ours as one of CuPy, whose version 14 has deprecated the older way."""
    made = getattr(cuda.Stream, "from_external", None)
    return made(stream) if made else cuda.ExternalStream(stream.handle, ordinal)


class _Allocation:
    """An address, and what takes it back when this is gone."""

    __slots__ = ("__weakref__", "give_back")

    def __init__(self, give_back: Callable[[], object]) -> None:
        self.give_back = give_back

    def __del__(self) -> None:
        self.give_back()


class _InOrder:
    """Allocators that allocate and free in the order of a stream, which they are given."""

    __slots__ = ("allocate", "allocator", "deallocate", "late", "theirs")

    def __init__(self, allocator: Any, theirs: Callable[[Stream], Any]) -> None:
        self.allocator, self.theirs = allocator, theirs
        self.allocate = _stream_last(allocator.allocate)
        deallocate = getattr(allocator, "deallocate", None)
        self.deallocate, self.late = _stream_last(deallocate), _knows_no_stream(deallocate)

    def __call__(self, nbytes: int, stream: Stream) -> tuple[int, object]:
        theirs, deallocate = self.theirs(stream), self.deallocate
        given = self.allocate(nbytes, theirs)
        if not _is_address(given):
            return _address(given), given
        _needs_deallocate(self.allocator)
        if self.late:  # they give it to anyone
            return index(given), _freed_late(deallocate, given, nbytes, stream)
        return index(given), _Allocation(lambda: deallocate(given, nbytes, theirs))


class _Anytime:
    """Allocators that know no streams: they get memory back when nothing uses it any more."""

    __slots__ = ("allocator",)

    def __init__(self, allocator: Any) -> None:
        self.allocator = allocator

    def __call__(self, nbytes: int, stream: Stream) -> tuple[int, object]:
        given: Any = self.allocator.allocate(nbytes)
        if _is_address(given):
            _needs_deallocate(self.allocator)
            deallocate = self.allocator.deallocate
            if _takes_stream(deallocate):
                give_back = _stream_last(deallocate)
                return index(given), _freed_late(give_back, given, nbytes, stream, stream)
            return index(given), _freed_late(deallocate, given, nbytes, stream)
        address, owner = _address(given), _Owner()
        finalize(owner, _forget, given, stream=stream)
        return address, owner


class _Owner:
    """Something whose end can be watched."""

    __slots__ = ("__weakref__",)


def _freed_late(
    deallocate: Any, given: object, nbytes: int, stream: Stream, *more: Stream
) -> _Owner:
    """Return an owner whose end gives memory back once the work of the stream has completed."""
    owner = _Owner()
    finalize(owner, deallocate, given, nbytes, *more, stream=stream)
    return owner


def _forget(given: object) -> None:
    """Drop a reference: the caller's arguments had the last one."""


def _needs_deallocate(allocator: Any) -> None:
    if not callable(getattr(allocator, "deallocate", None)):
        raise TypeError(
            f"{type(allocator).__name__}.allocate returned an address, so it must have deallocate()"
        )


# --- our resources as allocators of others -------------------------------------------------------


class _ForCuPy:
    """An allocator for CuPy."""

    __slots__ = ("resource",)

    def __init__(self, resource: MemoryResource) -> None:
        self.resource = resource

    def __call__(self, nbytes: int) -> Any:
        cuda = importlib.import_module("cupy").cuda
        ordinal = cuda.Device().id
        home = self.resource.device
        if home is not None and home.ordinal != ordinal:
            raise ValueError(
                f"the memory resource is on device {home.ordinal}, CuPy's current device is "
                f"{ordinal}: give each device an allocator of its own"
            )
        try:
            stream = _stream_on(cuda.get_current_stream(), device_at(ordinal))
            given = self.resource.allocate(nbytes, stream=stream)
            buffer = _core._given(self.resource, given, nbytes)
        except OutOfMemoryError as e:  # CuPy, and who uses it, expects its own
            free, total = cuda.runtime.memGetInfo()
            raise cuda.memory.OutOfMemoryError(nbytes, total - free) from e
        memory = cuda.UnownedMemory(buffer.handle, nbytes, buffer, ordinal)
        return cuda.MemoryPointer(memory, 0)

    def __repr__(self) -> str:
        return f"<cudago.allocators.for_cupy({self.resource!r})>"


def _stream_on(theirs: Any, device: Device) -> Stream:
    """Return a stream of another library. Default streams do not say of which device they are."""
    _, handle = theirs.__cuda_stream__()
    return Stream.from_handle(handle, device=device, owner=theirs)


def _checked(resource: object) -> MemoryResource:
    if not isinstance(resource, MemoryResource):
        raise TypeError(f"resource must be a MemoryResource, not {type(resource).__name__}")
    return resource


def for_cupy(resource: MemoryResource) -> Callable[[int], Any]:
    """Return an allocator for CuPy that allocates from a memory resource.

    Parameters
    ----------
    resource : MemoryResource
        Device memory of CuPy's current device, or managed memory.

    Returns
    -------
    callable
        For ``cupy.cuda.set_allocator`` or ``cupy.cuda.using_allocator``. CuPy's arrays keep the
        memory that it returns. If there is not enough memory it raises CuPy's own
        ``OutOfMemoryError``, whose cause is ours.

    See Also
    --------
    ForeignMemoryResource : The other way round.

    Notes
    -----
    Memory is allocated, and freed, in the order of CuPy's current stream. There, as with CuPy's own
    pools, you order what uses it on other streams.

    What is allocated while CuPy captures that stream (``stream.begin_capture()``) is there for as
    long as the captured graph, also if its arrays end before.

    Examples
    --------
    >>> allocate = cudago.allocators.for_cupy(device.memory_resource)
    >>> callable(allocate)  # cupy.cuda.set_allocator(allocate)
    True
    """
    return _ForCuPy(_checked(resource))


class _ForRMM:
    """What RMM calls to allocate and to free; it has the buffers in between.

    RMM's C++ calls the functions by bare pointers, and its copies of a resource outlive the one in
    Python: pools free what they have when they go. So the functions are kept while memory is out.
    """

    __slots__ = ("calls", "resource")
    held: ClassVar[dict[tuple[_ForRMM, int], tuple[Buffer, Stream, list[Any]]]] = {}

    def __init__(self, resource: MemoryResource) -> None:
        self.resource = resource
        self.calls: tuple[ref[Any], ...] = ()

    def functions(self) -> tuple[Callable[..., int], Callable[..., None]]:
        """Return what allocates and what frees; RMM's resource in Python keeps both."""
        functions = self.allocate, self.deallocate
        self.calls = tuple(map(ref, functions))
        return functions

    def allocate(self, nbytes: int, stream: Any = None) -> int:
        if nbytes == 0:
            return 0
        on = _stream_of_rmm(stream, self.resource.device)
        given = self.resource.allocate(nbytes, stream=on)
        buffer = _core._given(self.resource, given, nbytes)
        address = buffer.handle
        self.held[self, address] = buffer, on, [call() for call in self.calls]
        return address

    def deallocate(self, address: int, nbytes: int, stream: Any = None) -> None:
        """Free; RMM calls this where nothing can be raised, and would leave an exception behind."""
        if nbytes:
            _Allocation(lambda: self._give_back(address, stream))  # what it raises is unraisable

    def _give_back(self, address: int, stream: Any) -> None:
        try:
            there = _stream_of_rmm(stream, self.resource.device)
            buffer, on, _ = self.held[self, address]
            if there != on and not on.is_closed:
                on.wait(there)  # the free comes after what RMM's user has ordered before it
        except ClosedError as e:
            if not hasattr(e, "_at_exit"):
                raise
            return  # the driver frees what is left when the process ends
        del self.held[self, address]  # not before the wait: memory in use is rather kept
        buffer.close()


def _stream_of_rmm(stream: Any, device: Device | None) -> Stream:
    if not hasattr(stream, "__cuda_stream__"):
        raise TypeError("this RMM does not name its streams; a newer one does (__cuda_stream__)")
    return Stream(stream) if device is None else _stream_on(stream, device)


def for_rmm(resource: MemoryResource) -> Any:
    """Return a memory resource of RMM that allocates from one of ours.

    Parameters
    ----------
    resource : MemoryResource
        Device memory of RMM's current device, or managed memory.

    Returns
    -------
    rmm.mr.CallbackMemoryResource
        For ``rmm.mr.set_current_device_resource`` and everything that takes a resource of RMM.

    Raises
    ------
    ImportError
        If RMM is not installed.

    See Also
    --------
    ForeignMemoryResource : The other way round.

    Notes
    -----
    Memory is allocated, and freed, in the order of the streams that RMM names. Keep the stream that
    memory was allocated on until that is freed, even if it is freed on another stream. What is
    allocated while another library captures the stream is there for as long as the graph.

    Examples
    --------
    >>> make = cudago.allocators.for_rmm
    >>> callable(make)  # rmm.mr.set_current_device_resource(make(device.memory_resource))
    True
    """
    way = _ForRMM(_checked(resource))
    rmm = importlib.import_module("rmm")
    return rmm.mr.CallbackMemoryResource(*way.functions())
