# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What is known of a call's arguments: whether a captured graph can be launched again for them.

An argument is described by leaves; lists, tuples and dicts by those of their items. A leaf has a
*key*, which tells signatures apart, and a *value*, which tells whether the graph of a signature is
that of this call. Device memory of cudago is told by its address: while a graph keeps it nothing
else can have that address, and what no node uses does not matter. All other objects are told by
their identity, host memory too, because a function can read it.

Nothing here keeps an argument alive, except plain values and what the graph itself keeps.
"""

from __future__ import annotations

import gc
import math
import struct
import sys
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import ref

from .. import _core
from .._kernel.launch import LaunchConfig
from .._memory.buffer import Buffer, Pointer
from .._tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

_PLAIN = frozenset({bool, str, type(None), type(...), type(NotImplemented)})
_CHANGING = (_core.Graph, _core.GraphExec, set, deque)
_DEEPEST = 16
UNCHANGING = _PLAIN | {int, float, range, LaunchConfig}
_DEVICE_KINDS = (0, 1, 7, 8)  # enum cudago_cell_kind: what the host does not read
_ARRAYS = ("__dlpack__", "__cuda_array_interface__", "__array_interface__")


class Leaf(NamedTuple):
    """An argument, or an item of one."""

    path: str
    key: Hashable
    value: Any = None
    object: Any = None  # told by its identity, if not None


@dataclass(frozen=True, eq=False)
class Known:
    """What is kept of a leaf."""

    path: str
    value: Any
    same: Callable[[], Any] | None  # returns the object while it lives; None: the value says all
    text: str


class _Never:
    """The value of what cannot be recognized: equal to none."""


class _Kept:
    """Keeps an object, as a weak reference would if it could."""

    __slots__ = ("object",)

    def __init__(self, object: Any) -> None:
        self.object = object

    def __call__(self) -> Any:
        return self.object


def class_of(thing: Any) -> Any:
    """Return an object's class: not ``__class__``, which a proxy answers with its own code."""
    return cast("Any", type(thing))


def can_be_weak(thing: object) -> bool:
    """Whether there can be weak references to an object."""
    return bool(class_of(thing).__weakrefoffset__)


def leaves_of(arguments: Mapping[str, Any]) -> list[Leaf]:
    """Describe arguments by name. Runs code of other people's objects, whose errors are ignored."""
    return [leaf for name, given in arguments.items() for leaf in _leaves(name, given)]


def signature_of(leaves: Iterable[Leaf]) -> tuple[Hashable, ...]:
    """Return what calls have in common that can use one graph."""
    return tuple([leaf.key for leaf in leaves])


def is_same(known: Iterable[Known], leaves: Iterable[Leaf]) -> bool:
    """Whether the arguments of a call are those that are known, of the same signature."""
    for was, now in zip(known, leaves, strict=True):
        if was.value != now.value or (was.same is not None and was.same() is not now.object):
            return False
    return True


class Recent:
    """The very objects of a call. Recognizing them again takes a fraction of reading them."""

    __slots__ = ("_objects",)

    def __init__(self, objects: list[tuple[bool, int, Any]]) -> None:
        self._objects = objects

    @classmethod
    def of(cls, given: Iterable[Any], leaves: Iterable[Leaf]) -> Recent | None:
        """Remember the objects that leaves describe; None if one can change and stay the same."""
        told = {id(leaf.object) for leaf in leaves if _is_static(leaf.key)}
        objects: list[tuple[bool, int, Any]] = []
        for thing in given:
            kind = class_of(thing)
            if kind in UNCHANGING:
                objects.append((False, -1, _Kept(thing)))
            elif kind is Tensor:
                objects.append((True, -1, ref(thing)))
            elif kind is Buffer:
                objects.append((True, thing.size, ref(thing)))  # virtual memory grows
            elif id(thing) in told and can_be_weak(thing):
                objects.append((hasattr(kind, "is_closed"), -1, ref(thing)))
            else:
                return None
        return cls(objects)

    def are(self, given: tuple[Any, ...]) -> bool:
        """Whether these are the same objects, in the same state."""
        if len(given) != len(self._objects):
            return False
        for (can_close, size, was), now in zip(self._objects, given, strict=True):
            if (
                was() is not now
                or (can_close and now.is_closed)
                or (size >= 0 and now.size != size)
            ):
                return False
        return True


def differences(known: Iterable[Known], leaves: Iterable[Leaf]) -> Iterator[str]:
    """Yield in words what keeps arguments from being the same."""
    for was, now in zip(known, leaves, strict=True):
        value: Any = was.value
        if _Never in (type(was.value), type(now.value)):
            yield f"{now.path} cannot be recognized"
        elif was.same is not None and was.same() is not now.object:
            yield f"{now.path} is another {type(now.object).__name__}"
        elif was.value != now.value and now.object is None and class_of(value) is tuple:
            yield f"{now.path} was {value[0]} and is {now.value[0]}"
        elif was.value != now.value:
            yield f"{now.path} is other memory"


def keep(leaves: Iterable[Leaf], held: Iterable[Any], gone: Callable[[Any], None]) -> list[Known]:
    """Return what to keep of leaves; `held` is what the graph keeps alive itself.

    `gone` is called when an object dies by which the signature is told.
    """
    ours = {id(thing) for thing in held}
    return [_known(leaf, ours, gone) for leaf in leaves]


def _known(leaf: Leaf, held: set[int], gone: Callable[[Any], None]) -> Known:
    same: Callable[[], Any] | None = None
    value = leaf.value
    if leaf.object is not None:
        static = _is_static(leaf.key)
        try:
            same = ref(leaf.object, gone) if static else ref(leaf.object)
        except TypeError:
            if static or id(leaf.object) in held:
                same = _Kept(leaf.object)
            else:
                value = _Never()
    return Known(leaf.path, value, same, _text(leaf.key, type(value) is _Never))


def _is_static(key: Any) -> bool:
    return issubclass(type(key), tuple) and key[0] is _IS


def _text(key: Any, never: bool) -> str:
    """Return in words what a key says."""
    if not issubclass(type(key), tuple):
        return str(key.__name__)
    cls: Any = key[0]
    rest: tuple[Any, ...] = key[1:]
    if cls is _IS:
        return f"this {rest[0].__name__}"
    if cls in _PLAIN:
        return repr(rest[0])
    if cls is range:
        return repr(range(*rest))
    if cls is LaunchConfig:
        return "LaunchConfig(" + ", ".join(str(part) for part in rest[0] if part) + ")"
    if cls is Tensor and not never:
        return f"{rest[0]}{list(rest[1])} on {_place(rest[3])}"
    if cls is Buffer and not never:
        return f"{rest[1]} buffer of {rest[0]} bytes on {_place(rest[2])}"
    if cls is Pointer and not never:
        return f"pointer into a {_text(rest[0], never=False)}"
    if len(rest) == 4:
        return f"{cls.__name__} {rest[2]}{list(rest[0])}"  # an array
    return str(cls.__name__) + ", which cannot be recognized" * never


def _place(ordinal: int | None) -> str:
    return "the host" if ordinal is None else f"device {ordinal}"


# --- leaves of one argument -----------------------------------------------------------------------


def _leaves(path: str, given: Any) -> Iterable[Leaf]:
    cls = class_of(given)
    if cls in _PLAIN:
        return (Leaf(path, (cls, given)),)
    if read := _OURS.get(cls):
        return (read(path, given),)
    if (is_sequence := tuple in cls.__mro__ or list in cls.__mro__) or dict in cls.__mro__:
        if path.count("[") > _DEEPEST:  # it may contain itself
            return (_unknown(path, given),)
        return (_sequence if is_sequence else _mapping)(path, given, cls)
    return (_other(path, given, cls),)


def _sequence(path: str, given: Iterable[Any], cls: type[Any]) -> Iterator[Leaf]:
    items = list(given)
    yield Leaf(path, (cls, len(items)))
    for i, item in enumerate(items):
        yield from _leaves(f"{path}[{i}]", item)


def _mapping(path: str, given: Mapping[Any, Any], cls: type[Any]) -> Iterator[Leaf]:
    items = list(given.items())
    names = tuple([name for name, _ in items])
    if not all(type(name) in (str, int) for name in names):
        yield _unknown(path, given)
        return
    yield Leaf(path, (cls, names))
    for name, item in items:
        yield from _leaves(f"{path}[{name!r}]", item)


def _other(path: str, given: Any, cls: Any) -> Leaf:
    """Describe what is not of cudago: scalars of NumPy and ctypes, memory, and everything else."""
    try:
        if _is_a(cls, "numpy", "generic"):
            return Leaf(path, (cls, str(given.dtype)), (repr(given), given.tobytes()))
        if any(hasattr(cls, name) for name in _ARRAYS):
            return _array(path, given, cls)
        if hasattr(cls, "__buffer__") or sys.version_info < (3, 12):
            with memoryview(given) as view:
                content = view.tobytes() if _is_a(cls, "ctypes", "_SimpleCData") else None
                key = (cls, view.nbytes, view.format, view.readonly)
            return Leaf(path, key, [content], given)
    except TypeError:
        pass  # no memory
    except Exception:  # of the object's own code: the function meets it too, if it uses the object
        return _unknown(path, given)
    return _static(path, given, cls)


def _is_a(cls: Any, module: str, name: str) -> bool:
    """Whether a class is one of a module, which need not be loaded."""
    base = getattr(sys.modules.get(module), name, None)
    return isinstance(base, type) and issubclass(cls, base)


def _static(path: str, given: Any, cls: type[Any]) -> Leaf:
    """Describe what is neither a value nor memory, such as a function: it chooses what is done."""
    if issubclass(cls, _CHANGING):  # nothing tells whether it has changed
        return _unknown(path, given)
    if cls.__module__.startswith("cudago.") and getattr(given, "is_closed", False):
        return _unknown(path, given)
    if not can_be_weak(given) and gc.is_tracked(given):  # the cache must not keep what it holds
        return Leaf(path, (cls,), None, given)
    return Leaf(path, (_IS, cls, id(given)), None, given)


def _unknown(path: str, given: Any) -> Leaf:
    return Leaf(path, (type(given),), _Never())


def _array(path: str, given: Any, cls: Any) -> Leaf:
    """Describe an array of another library. Its memory can be exchanged: torch's ``set_``."""
    shape = tuple([int(size) for size in getattr(given, "shape", ())])
    stride: Any = getattr(given, "stride", None)
    strides: Any = stride() if callable(stride) else getattr(given, "strides", None)
    strides = strides and tuple([int(step) for step in strides])
    dtype, device = (str(getattr(given, name, "")) for name in ("dtype", "device"))
    pointer = getattr(given, "data_ptr", None)
    if callable(pointer):
        address = pointer()
    else:
        found: list[Any] = [getattr(given, name, None) for name in _ARRAYS[1:]]
        address = next((int(i["data"][0]) for i in found if i is not None), None)
    content = given.tobytes() if not shape and hasattr(given, "tobytes") else None  # a scalar
    return Leaf(path, (cls, shape, strides, dtype, device), [address, content], given)


# --- of cudago, and numbers -----------------------------------------------------------------------


def _int(path: str, given: int) -> Leaf:
    return Leaf(path, int, (given,))


def _float(path: str, given: float) -> Leaf:
    if given != given:  # which no nan equals: its bits are what a kernel gets
        return Leaf(path, float, ("nan", struct.pack("<d", given)))
    return Leaf(path, float, (given, math.copysign(1, given)))  # -0.0 == 0.0


def _complex(path: str, given: complex) -> Leaf:
    return Leaf(path, complex, (repr(given),))


def _bytes(path: str, given: bytes) -> Leaf:
    return Leaf(path, (bytes, len(given)), [given])


def _range(path: str, given: range) -> Leaf:
    # Ranges of the same numbers are equal, and may have other ends.
    return Leaf(path, (range, given.start, given.stop, given.step))


def _config(path: str, given: LaunchConfig) -> Leaf:
    return Leaf(path, (LaunchConfig, given._key()))


def _tensor(path: str, given: Tensor) -> Leaf:
    if given.is_closed:
        return _unknown(path, given)
    kind = given._memory[0]
    where = given._ordinal
    key = (Tensor, given.dtype_name, given.shape, given.strides, where, given.is_readonly, kind)
    return Leaf(path, key, [given.handle], None if kind in _DEVICE_KINDS else given)


def _buffer(path: str, given: Buffer) -> Leaf:
    if given.is_closed:
        return _unknown(path, given)
    kind = given.kind
    is_device = kind in ("device", "graph", "variable")
    key = (Buffer, given.size, kind, given._ordinal)
    return Leaf(path, key, [given.handle], None if is_device else given)


def _pointer(path: str, given: Pointer) -> Leaf:
    leaf = _buffer(path, given.buffer)
    if type(leaf.value) is _Never:
        return leaf
    return Leaf(path, (Pointer, leaf.key, given.offset), [int(given)], leaf.object)


_IS = "is"
_OURS: dict[type, Callable[[str, Any], Leaf]] = {
    int: _int,
    float: _float,
    complex: _complex,
    bytes: _bytes,
    range: _range,
    LaunchConfig: _config,
    Tensor: _tensor,
    Buffer: _buffer,
    Pointer: _pointer,
}
