# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for XLA: calls the function that JAX registers, with frames made by hand.

The layouts are those of xla/ffi/api/c_api.h of jaxlib 0.10.2, version 0.3 of the interface. A call
through ctypes is without the GIL, as XLA's are.
"""

from __future__ import annotations

import ctypes
from typing import Any

from cudago import _core

F32, S32 = 11, 4
SIZE, POINTER, INT, LONG = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
STAGE_EXECUTE = 3

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = POINTER
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def struct(name: str, *fields: tuple[str, Any]) -> Any:
    """Make a structure that begins with its size and, as all but one do, its extensions."""
    first = (("size", SIZE), ("extensions", POINTER))
    return type(name, (ctypes.Structure,), {"_fields_": (*first, *fields)})


Version = struct("Version", ("major", INT), ("minor", INT))
ErrorCreate = struct("ErrorCreate", ("message", ctypes.c_char_p), ("code", INT))
StreamGet = struct("StreamGet", ("context", POINTER), ("stream", POINTER))
Buffer = struct("Buffer", ("type", INT), ("data", POINTER), ("rank", LONG), ("shape", POINTER))
Items = struct("Items", ("n", LONG), ("kinds", POINTER), ("items", POINTER))
Attributes = struct(
    "Attributes", ("n", LONG), ("kinds", POINTER), ("names", POINTER), ("items", POINTER)
)
Api = struct(
    "Api",
    ("version", Version),
    ("internal", POINTER),
    ("error_create", POINTER),
    ("error_get_message", POINTER),
    ("error_destroy", POINTER),
    ("handler_register", POINTER),
    ("stream_get", POINTER),
    ("rest", POINTER * 13),
)
Frame = struct(
    "Frame",
    ("api", POINTER),
    ("context", POINTER),
    ("stage", INT),
    ("arguments", Items),
    ("results", Items),
    ("attributes", Attributes),
    ("future", POINTER),
)
Metadata = type(
    "Metadata",
    (ctypes.Structure,),
    {
        "_fields_": (
            ("size", SIZE),
            ("version", Version),
            ("traits", ctypes.c_uint32),
            ("state", LONG),
        )
    },
)


class Extension(ctypes.Structure):
    """A link of the chain of extensions; the question about a function's metadata is of type 1."""

    _fields_ = (("size", SIZE), ("type", INT), ("next", POINTER), ("metadata", POINTER))


class Text(ctypes.Structure):
    """A string without a NUL."""

    _fields_ = (("text", ctypes.c_char_p), ("n", SIZE))


class XLA:
    """The interface's other side. Errors are numbers: indices into `errors`, from 1."""

    def __init__(self, *, major: int = 0, minor: int = 3, stream: int | None = None) -> None:
        self.errors: list[tuple[str, int]] = []
        self.kept: list[Any] = []
        self.stream = stream
        self._create = ctypes.CFUNCTYPE(POINTER, ctypes.POINTER(ErrorCreate))(self._error)
        self._get = ctypes.CFUNCTYPE(POINTER, ctypes.POINTER(StreamGet))(self._stream)
        self.api = Api(size=ctypes.sizeof(Api))
        self.api.version = Version(ctypes.sizeof(Version), None, major, minor)
        self.api.error_create = ctypes.cast(self._create, POINTER)
        self.api.stream_get = ctypes.cast(self._get, POINTER)

    def _error(self, args: Any) -> int:
        self.errors.append((args.contents.message.decode(), args.contents.code))
        return len(self.errors)

    def _stream(self, args: Any) -> int | None:
        if self.stream is None:
            self.errors.append(("XLA has no stream", 12))
            return len(self.errors)
        args.contents.stream = self.stream
        return None

    def keep(self, made: Any) -> int:
        """Return the address of something that lives as long as this."""
        self.kept.append(made)
        return ctypes.addressof(made)

    def buffer(self, address: int | None, shape: tuple[int, ...], kind: int = F32) -> Any:
        """Describe an array."""
        dims = self.keep((LONG * max(1, len(shape)))(*shape))
        made = Buffer(ctypes.sizeof(Buffer), None, kind, address, len(shape), dims)
        self.kept.append(made)
        return made

    def items(self, buffers: list[Any], kind: int = 1) -> Any:
        """List arrays."""
        n = len(buffers)
        kinds = self.keep((INT * max(1, n))(*[kind] * n))
        pointers = (POINTER * max(1, n))(*[ctypes.addressof(b) for b in buffers])
        return Items(ctypes.sizeof(Items), None, n, kinds, self.keep(pointers))

    def attributes(self, **texts: str) -> Any:
        """List attributes that are strings."""
        n = len(texts)
        kinds = self.keep((INT * max(1, n))(*[4] * n))
        names, items = (POINTER * max(1, n))(), (POINTER * max(1, n))()
        for i, (name, text) in enumerate(sorted(texts.items())):
            names[i] = self.keep(Text(name.encode(), len(name)))
            items[i] = self.keep(Text(text.encode(), len(text)))
        return Attributes(
            ctypes.sizeof(Attributes), None, n, kinds, self.keep(names), self.keep(items)
        )

    def frame(self, key: str, arguments: list[Any], results: list[Any]) -> Any:
        """Describe a call."""
        f = Frame(size=Frame.future.offset, api=ctypes.addressof(self.api), stage=STAGE_EXECUTE)
        f.arguments, f.results = self.items(arguments), self.items(results)
        f.attributes = self.attributes(program=key, another="text")
        return f

    def query(self, size: int | None = None) -> tuple[Any, Any]:
        """Describe the question about a function; gives the frame, and what is to be filled in."""
        metadata = Metadata(size=Metadata.traits.offset + 4 if size is None else size)
        extension = Extension(ctypes.sizeof(Extension), 1, None, self.keep(metadata))
        other = Extension(ctypes.sizeof(Extension), 99, self.keep(extension), None)
        f = self.frame("", [], [])
        f.stage = 0
        f.extensions = self.keep(other)
        return f, metadata

    @staticmethod
    def function(platform: str) -> Any:
        """Return what JAX registers for a platform."""
        address = _pointer(_core._xla_handler(platform), None)
        return ctypes.CFUNCTYPE(POINTER, POINTER)(address)

    def call(
        self, frame: Any, platform: str = "cpu", function: Any = None
    ) -> tuple[str, int] | None:
        """Call the function; gives the error's message and code."""
        error = (function or self.function(platform))(ctypes.addressof(frame))
        return self.errors[error - 1] if error else None
