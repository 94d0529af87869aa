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
STAGE_INSTANTIATE, STAGE_EXECUTE = 0, 3

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
TypeInfo = struct("TypeInfo", ("destroy", POINTER))
TypeRegister = struct(
    "TypeRegister",
    ("name", ctypes.c_char_p),
    ("name_size", SIZE),
    ("type", ctypes.POINTER(LONG)),
    ("info", ctypes.POINTER(TypeInfo)),  # since version 0.2
)
StateSetOld = struct(  # up to version 0.2, which ends before destroy
    "StateSetOld",
    ("context", POINTER),
    ("type", ctypes.POINTER(LONG)),
    ("state", POINTER),
    ("destroy", POINTER),
)
StateSet = struct(
    "StateSet",
    ("context", POINTER),
    ("stage", INT),
    ("type", ctypes.POINTER(LONG)),
    ("state", POINTER),
)
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
    ("type_register", POINTER),
    ("context_get", POINTER),
    ("state_set", POINTER),
    ("rest", POINTER * 10),
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


_all: list[Any] = []


class XLA:
    """The interface's other side. Errors are numbers: indices into `errors`, from 1.

    `states` has what was set at each instantiation: what destroys it, and itself.
    """

    def __init__(self, *, major: int = 0, minor: int = 3, stream: int | None = None) -> None:
        self.errors: list[tuple[str, int]] = []
        self.kept: list[Any] = []
        self.stream = stream
        self.minor = minor
        self.types: list[tuple[bytes, int | None]] = []
        self.states: list[tuple[int, int]] = []
        self._create = ctypes.CFUNCTYPE(POINTER, ctypes.POINTER(ErrorCreate))(self._error)
        self._get = ctypes.CFUNCTYPE(POINTER, ctypes.POINTER(StreamGet))(self._stream)
        self._type = ctypes.CFUNCTYPE(POINTER, ctypes.POINTER(TypeRegister))(self._register)
        old = minor < 3
        form = ctypes.POINTER(StateSetOld if old else StateSet)
        self._set = ctypes.CFUNCTYPE(POINTER, form)(self._state_old if old else self._state)
        self.api = Api(size=ctypes.sizeof(Api))
        self.api.version = Version(ctypes.sizeof(Version), None, major, minor)
        self.api.error_create = ctypes.cast(self._create, POINTER)
        self.api.stream_get = ctypes.cast(self._get, POINTER)
        self.api.type_register = ctypes.cast(self._type, POINTER)
        self.api.state_set = ctypes.cast(self._set, POINTER)
        _all.append(self)  # a table of XLA's is there for good

    def _fail(self, message: str, code: int) -> int:
        self.errors.append((message, code))
        return len(self.errors)

    def _register(self, args: Any) -> int | None:
        a = args.contents
        if a.size != (40 if self.minor < 2 else 48):
            return self._fail(f"a type of {a.size} bytes", 3)
        if self.types:
            return self._fail("a name is registered twice", 6)
        destroy = None if self.minor < 2 else a.info.contents.destroy
        self.types.append((ctypes.string_at(a.name, a.name_size), destroy))
        a.type[0] = 41
        return None

    def _state_old(self, args: Any) -> int | None:
        a = args.contents
        if a.size != (48 if self.minor < 2 else 40) or a.type[0] != 41:
            return self._fail(f"a state of {a.size} bytes, of type {a.type[0]}", 3)
        destroy = a.destroy if self.minor < 2 else self.types[0][1]
        self.states.append((destroy, a.state))
        return None

    def _state(self, args: Any) -> int | None:
        a = args.contents
        if a.size != 48 or a.type[0] != 41 or a.stage != STAGE_INSTANTIATE:
            return self._fail(f"a state of {a.size} bytes, type {a.type[0]}, stage {a.stage}", 3)
        self.states.append((self.types[0][1], a.state))
        return None

    def destroy(self) -> None:
        """End the executable that was instantiated first, without the GIL."""
        destroy, state = self.states.pop(0)
        ctypes.CFUNCTYPE(None, POINTER)(destroy)(state)

    def _error(self, args: Any) -> int:
        return self._fail(args.contents.message.decode(), args.contents.code)

    def _stream(self, args: Any) -> int | None:
        if self.stream is None:
            return self._fail("XLA has no stream", 12)
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

    def instantiation(self, key: str) -> Any:
        """Describe the instantiation of an executable that calls a program."""
        f = self.frame(key, [], [])
        f.stage = STAGE_INSTANTIATE
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
