# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Forms: hostile objects made of a good value.

Each behaves as its value does, and tells a trap whenever cudago, or Python on its behalf, asks it
for something: a conversion, a protocol, an attribute. The trap is told after the answer was worked
out, because an answer that is out of date when it arrives is the more hostile one.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import cudago as cu

from .world import NBYTES, World, numbers


class Trap:
    """Counts the questions; at the one that was chosen it runs an action, once."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.at = -1
        self.action: Callable[[], None] | None = None
        self.armed = False
        self.sprung = False
        self.values: list[list[Any]] = []  # what hostile objects keep of the world

    def hold(self, value: Any) -> list[Any]:
        """Return a cell with a value, which dropping empties."""
        cell = [value]
        self.values.append(cell)
        return cell

    def tell(self, question: str) -> None:
        """Note a question, and act if it is the one."""
        if not self.armed:
            return
        self.log.append(question)
        if len(self.log) - 1 == self.at and self.action is not None:
            self.armed, self.sprung = False, True
            try:
                self.action()
            finally:
                self.armed = True


Make = Callable[[Any, Trap, World], Any]

# Not asked of an object in ordinary use, or not to be intercepted.
_LEAVE = {
    *("__new__", "__init__", "__getattribute__", "__getattr__", "__setattr__", "__delattr__"),
    *("__class__", "__dict__", "__slots__", "__init_subclass__", "__subclasshook__", "__reduce__"),
    *("__reduce_ex__", "__dir__", "__sizeof__", "__getstate__", "__setstate__", "__doc__"),
    *(
        "__module__",
        "__weakref__",
        "__del__",
        "__class_getitem__",
        "__getnewargs__",
    ),
    *("__array_ufunc__", "__array_function__", "__release_buffer__", "__copy__", "__deepcopy__"),
}


def _delegate(name: str, trap: Trap) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        answer = getattr(self._cell[0], name)(*args, **kwargs)
        trap.tell(name)
        return answer

    return method


def _attribute(name: str, trap: Trap) -> property:
    def get(self: Any) -> Any:
        answer = getattr(self._cell[0], name)
        trap.tell(name)
        return answer

    return property(get)


def proxy(value: Any, trap: Trap, world: World) -> Any:
    """An object of a class of its own that claims to be of the value's class."""
    cls = type(value)
    body: dict[str, Any] = {"__slots__": ("_cell", "__weakref__")}
    for name in dir(cls):
        if name in _LEAVE or name in ("_cell", "__cuda_array_interface__"):
            continue
        special = name.startswith("__") and callable(getattr(cls, name, None))
        body[name] = _delegate(name, trap) if special else _attribute(name, trap)
    if "__hash__" in body and cls.__hash__ is None:
        body["__hash__"] = None
    if cls is cu.Pointer:  # a number has no owner: it must be of memory that nobody closes
        address = lend(world).handle
        body["__index__"] = body["__int__"] = lambda self: (trap.tell("__index__"), address)[1]
    body["__class__"] = property(lambda self: (trap.tell("__class__"), cls)[1])
    made = type(f"Hostile_{cls.__name__}", (), body)()
    made._cell = trap.hold(value)
    return made


_OVERRIDDEN = (
    *("__index__", "__int__", "__float__", "__bool__", "__str__", "__repr__", "__format__"),
    *("__iter__", "__len__", "__getitem__", "__contains__", "__eq__", "__ne__", "__hash__"),
    *("__lt__", "__le__", "__gt__", "__ge__", "__add__", "__mul__", "__rmul__", "__fspath__"),
    *("__buffer__", "__dlpack__", "__dlpack_device__", "__array__", "items", "keys", "encode"),
)


def subclass(value: Any, trap: Trap, world: World) -> Any:
    """The value again, of a subclass of its builtin class that overrides what can be asked."""
    base = int if isinstance(value, bool) else type(value)

    def override(name: str) -> Callable[..., Any]:
        own = getattr(base, name)

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            answer = own(self, *args, **kwargs)
            trap.tell(name)
            return answer

        return method

    found = {n: override(n) for n in _OVERRIDDEN if callable(getattr(base, n, None))}
    if base.__hash__ is None:
        found["__hash__"] = None
    cls = type(f"Hostile_{base.__name__}", (base,), found)
    return value.view(cls) if isinstance(value, np.ndarray) else cls(value)


def items(value: Any, trap: Trap, world: World) -> Any:
    """A container of its own class whose items are hostile."""
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return slice(*(v if v is None else proxy(v, trap, world) for v in parts))
    if isinstance(value, dict):
        return {k: proxy(v, trap, world) for k, v in value.items()}
    return type(value)(v if v is None or v is ... else proxy(v, trap, world) for v in value)


def iterable(value: Any, trap: Trap, world: World) -> Any:
    """What only can be iterated."""

    class Iterable:
        def __iter__(self) -> Iterator[Any]:
            for item in value:
                trap.tell("__next__")
                yield item

    return Iterable()


def mutated(value: list[Any], trap: Trap, world: World) -> Any:
    """A list that its own items empty."""
    made = list(value)
    cell = trap.hold(None)

    class Item:
        def __index__(self) -> int:
            made.clear()
            trap.tell("__index__")
            return int(cell[0] or 1)

    made[0] = Item()
    return made


def stream_protocol(value: cu.Stream, trap: Trap, world: World) -> Any:
    """Somebody's stream, by the protocol."""
    cell = trap.hold(value)

    class Foreign:
        def __cuda_stream__(self) -> tuple[int, int]:
            answer = cell[0].__cuda_stream__()
            trap.tell("__cuda_stream__")
            return answer

    return Foreign()


def stream_attribute(value: cu.Stream, trap: Trap, world: World) -> Any:
    """Somebody's stream, as PyTorch's is."""
    cell = trap.hold(value)

    class Foreign:
        @property
        def cuda_stream(self) -> int:
            answer = cell[0].handle
            trap.tell("cuda_stream")
            return answer

        @property
        def device(self) -> Any:
            trap.tell("device")
            return None

    return Foreign()


def stream_temporary(value: cu.Stream, trap: Trap, world: World) -> Any:
    """A handle of a stream that nobody but the answer names."""

    class Temporary:
        def __cuda_stream__(self) -> tuple[int, int]:
            stream = cu.Device().create_stream()
            answer = stream.__cuda_stream__()
            trap.tell("__cuda_stream__")
            return answer

    return Temporary()


def dlpack(value: Any, trap: Trap, world: World) -> Any:
    """Somebody's tensor, by DLPack alone."""
    cell = trap.hold(value.buffer if isinstance(value, cu.Pointer) else value)

    class Producer:
        def __dlpack__(self, **keywords: Any) -> Any:
            if isinstance(cell[0], np.ndarray):
                keywords = {}
            answer = cell[0].__dlpack__(**keywords)
            trap.tell("__dlpack__")
            return answer

        def __dlpack_device__(self) -> tuple[int, int]:
            answer = cell[0].__dlpack_device__()
            trap.tell("__dlpack_device__")
            return answer

    return Producer()


def dlpack_simple(value: Any, trap: Trap, world: World) -> Any:
    """A producer from before DLPack had versions: it refuses every keyword but stream."""
    cell = trap.hold(np.asarray(value))

    class Producer:
        def __dlpack__(self, *, stream: Any = None) -> Any:
            answer = cell[0].__dlpack__()
            trap.tell("__dlpack__")
            return answer

        def __dlpack_device__(self) -> tuple[int, int]:
            trap.tell("__dlpack_device__")
            return (1, 0)

    return Producer()


def lend(world: World) -> cu.Buffer:
    """Device memory that stays until the world ends."""
    lent = cu.Device().allocate(NBYTES, stream=world.get("stream"))
    lent.copy_from(numbers(1000), stream=world.get("stream"))
    world.get("stream").sync()
    world.lent.append(lent)
    return lent


def interface(value: Any, trap: Trap, world: World) -> Any:
    """Somebody's device memory, by its address alone: nobody else may free it."""
    address = lend(world).handle
    answer = {"shape": (64,), "typestr": "<i4", "data": (address, False), "version": 3}

    class Producer:
        @property
        def __cuda_array_interface__(self) -> Any:
            trap.tell("__cuda_array_interface__")
            return (
                items({"version": 3}, trap, world) | answer | {"shape": proxy((64,), trap, world)}
            )

    return Producer()


def exporter(value: Any, trap: Trap, world: World) -> Any:
    """An object whose class exports a buffer in Python."""
    cell = trap.hold(bytearray(np.asarray(value).tobytes()))

    class Exporter:
        def __buffer__(self, flags: int) -> memoryview:
            answer = memoryview(cell[0])
            trap.tell("__buffer__")
            return answer

        def __release_buffer__(self, view: memoryview) -> None:
            trap.tell("__release_buffer__")

    return Exporter()


def dying(value: Any, trap: Trap, world: World) -> Any:
    """Memory that acts when it dies: only the call keeps it."""
    if isinstance(value, np.ndarray):

        class DyingArray(np.ndarray):
            def __del__(self) -> None:
                trap.tell("__del__")

        return value.copy().view(DyingArray)

    class DyingBytes(bytearray):
        def __del__(self) -> None:
            trap.tell("__del__")

    return DyingBytes(value)


def function(value: Callable[..., Any], trap: Trap, world: World) -> Any:
    """A function that acts when it is called."""

    def hostile(*args: Any, **kwargs: Any) -> None:
        trap.tell("__call__")

    return hostile


def reclassed(value: Any, trap: Trap, world: World) -> Any:
    """The value itself, made an object of a subclass that overrides what can be asked."""
    cls = type(value)

    def override(name: str, own: Any) -> Any:
        if isinstance(own, property) or not callable(own):
            get = own.__get__
            return property(lambda self: (get(self, cls), trap.tell(name))[0])

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            answer = own(self, *args, **kwargs)
            trap.tell(name)
            return answer

        return method

    body: dict[str, Any] = {"__slots__": ()}
    for base in reversed(cls.__mro__[:-1]):
        for name, own in vars(base).items():
            if name in _LEAVE or (name.startswith("_") and not name.startswith("__")):
                continue
            if callable(own) or isinstance(own, property) or hasattr(type(own), "__get__"):
                body[name] = override(name, own) if own is not None else None
    with contextlib.suppress(TypeError):  # the class is final, or the layout another
        made = type(f"Hostile{cls.__name__}", (cls,), body)
        object.__setattr__(value, "__class__", made)  # frozen data classes refuse it otherwise
    return value


def forms_of(value: Any) -> dict[str, Make]:
    """Forms that a value can take."""
    if value is None:
        return {}
    if callable(value) and not isinstance(value, type) and type(value).__module__ == "builtins":
        return {"function": function}
    found: dict[str, Make] = {"proxy": proxy}
    if type(value).__module__ == "builtins" and not isinstance(value, (slice, type(...))):
        found["subclass"] = subclass
    if isinstance(value, (tuple, list, slice, dict)) and value:
        found["items"] = items
    if isinstance(value, (tuple, list)):
        found["iterable"] = iterable
    if isinstance(value, list) and isinstance(value[0], int):
        found["mutated"] = mutated
    if isinstance(value, cu.Stream):
        found |= {"protocol": stream_protocol, "attribute": stream_attribute}
        found["temporary"] = stream_temporary
    if isinstance(value, (np.ndarray, cu.Buffer, cu.Tensor, cu.Pointer)):
        found["dlpack"] = dlpack
    if isinstance(value, (np.ndarray, bytearray)):
        found |= {"simple": dlpack_simple, "dying": dying, "interface": interface}
    if isinstance(value, (np.ndarray, bytearray, bytes)) and sys.version_info >= (3, 12):
        found["exporter"] = exporter
    if isinstance(value, np.ndarray):
        found["subclass"] = subclass
    if type(value).__module__.startswith("cudago") and not isinstance(value, cu.Device):
        found["reclassed"] = reclassed
    return found
