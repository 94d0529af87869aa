# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Types for annotations: the arguments of cudago's functions, and protocols of other libraries.

You need none of them to call cudago. Importing this module loads nothing that ``import cudago`` has
not loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Protocol,
    SupportsFloat,
    SupportsIndex,
    TypeAlias,
)

from ._core import Descriptor
from ._memory.buffer import Buffer, Pointer
from ._stream.stream import Stream
from ._tensor.tensor import Tensor

if TYPE_CHECKING:
    from dataclasses import Field

__all__ = [
    "BufferLike",
    "CaptureMode",
    "CodeKind",
    "DataclassInstance",
    "Dims",
    "DriverChoice",
    "DriverName",
    "FileDescriptorLike",
    "KernelArgument",
    "MemoryLike",
    "SourceKind",
    "StreamLike",
    "SupportsCUDAArrayInterface",
    "SupportsCUDAStream",
    "SupportsDLPack",
    "SupportsFileno",
    "WaitCondition",
]

DriverName: TypeAlias = Literal["nvidia", "sim"]
"""What `cudago.driver_name` returns."""

DriverChoice: TypeAlias = Literal["auto", "nvidia", "sim"]
"""What `cudago.init` takes."""

CaptureMode: TypeAlias = Literal["global", "thread_local", "relaxed"]
"""Which threads a capture keeps from calls that it forbids: `Stream.capture`."""

WaitCondition: TypeAlias = Literal[">=", "==", "&", "nor"]
"""What must hold of a number in memory: `Stream.wait_value`."""

SourceKind: TypeAlias = Literal["c++", "ptx", "nvvm"]
"""What the source of a `Program` is."""

CodeKind: TypeAlias = Literal["ptx", "cubin", "ltoir"]
"""What `Program.compile` makes."""

Dims: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
"""One size, or one for each dimension."""


class SupportsFileno(Protocol):
    """An object that has a file descriptor, as files and sockets do."""

    def fileno(self) -> int:
        """Return the file descriptor.

        Returns
        -------
        int
            It stays the object's.
        """
        ...


FileDescriptorLike: TypeAlias = int | SupportsFileno
"""A file descriptor, or an object that has one."""


class SupportsCUDAStream(Protocol):
    """A stream of any library, through the protocol of the same name."""

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return ``(0, handle)``, the handle being a ``CUstream``."""
        ...


class SupportsDLPack(Protocol):
    """An array of any library that supports DLPack."""

    def __dlpack__(self, *, stream: Any = ...) -> Any:
        """Return a DLPack capsule."""
        ...

    def __dlpack_device__(self) -> tuple[Any, Any]:
        """Return DLPack's device type and number."""
        ...


class SupportsCUDAArrayInterface(Protocol):
    """An array with Numba's CUDA array interface, which has no owner: keep the object alive."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Address, shape and type of the memory."""
        ...


class BufferLike(Protocol):
    """An object with Python's buffer protocol: ``bytes``, ``bytearray``, NumPy arrays."""

    def __buffer__(self, flags: int, /) -> memoryview:
        """Return a view of the memory."""
        ...


class DataclassInstance(Protocol):
    """An instance of a dataclass, which kernels take as a struct."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


StreamLike: TypeAlias = Stream | SupportsCUDAStream
"""A stream of cudago or of another library."""

MemoryLike: TypeAlias = (
    Buffer | Pointer | Tensor | BufferLike | SupportsDLPack | SupportsCUDAArrayInterface
)
"""What copies and graph nodes take."""

KernelArgument: TypeAlias = (
    MemoryLike | Descriptor | DataclassInstance | SupportsIndex | SupportsFloat | complex | None
)
"""What `cudago.launch` takes for a parameter."""
