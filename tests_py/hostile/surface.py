# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The public surface: every class, method, property and function of cudago, with its parameters.

Read from `cudago.__all__`, the classes themselves, and, for what is written in C, _core.pyi.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import cudago as cu

# Modules of the package whose names are public too, though `import cudago` does not list them.
MODULES = ("allocators", "compile_cache", "debug", "dlpack", "jax_ops", "nvtx", "sim")

# What the interpreter asks of any class, and runs no code of cudago.
PLUMBING = {
    "__new__",
    "__init_subclass__",
    "__subclasshook__",
    "__buffer__",
    "__release_buffer__",
    "__iter__",
    "__class_getitem__",
    "__getnewargs__",
    "__replace__",
}


@dataclass(frozen=True)
class Parameter:
    """One parameter: how it is passed."""

    name: str
    by_keyword: bool = False
    variadic: bool = False


@dataclass(frozen=True)
class Target:
    """Something to call: ``Class.method``, ``Class.property``, ``Class.property=``, a function."""

    name: str
    owner: str  # name of the class, with its module; empty for functions
    member: str
    how: str  # "call", "construct", "get", "set" or "protocol"
    parameters: tuple[Parameter, ...]


def targets() -> list[Target]:
    """Everything public, in a stable order."""
    found: dict[str, Target] = {}
    for name in sorted(cu.__all__):
        thing = getattr(cu, name)
        made = _of_class(name, thing) if isinstance(thing, type) else [_function(name, thing)]
        found |= {t.name: t for t in made}
    for module in MODULES:
        for name in sorted(import_module(f"cudago.{module}").__all__):
            thing = getattr(import_module(f"cudago.{module}"), name)
            full = f"{module}.{name}"
            made = _of_class(full, thing) if isinstance(thing, type) else [_function(full, thing)]
            found |= {t.name: t for t in made}
    return list(found.values())


def _function(name: str, thing: Any) -> Target:
    return Target(name, "", name, "call", tuple(_parameters(thing, None, name.split(".")[-1])))


def _of_class(name: str, cls: type) -> Iterator[Target]:
    if issubclass(cls, BaseException) or cls is cu.Parameter.__base__:
        return  # exceptions are Python's own, with attributes
    if "__new__" in _own(cls) or "__init__" in _own(cls):
        yield Target(name, name, "", "construct", tuple(_constructor(cls)))
    for member in sorted(_own(cls)):
        if member in PLUMBING or member == "__init__":
            continue
        if member.startswith("_") and not (member.startswith("__") and member.endswith("__")):
            continue
        yield from _of_member(name, cls, member, inspect.getattr_static(cls, member))
    for member in ("__buffer__", "__iter__"):  # slots that not every Python shows in the class
        if _stub(cls, member):
            yield Target(f"{name}.{member}", name, member, "protocol", ())


def _of_member(name: str, cls: type, member: str, static: Any) -> Iterator[Target]:
    full = f"{name}.{member}"
    if isinstance(static, property) or inspect.isdatadescriptor(static):
        yield Target(full, name, member, "get", ())
        if _settable(cls, member, static):
            yield Target(f"{full}=", name, member, "set", (Parameter("value"),))
    elif callable(static) or isinstance(static, (classmethod, staticmethod)):
        yield Target(full, name, member, "call", tuple(_parameters(static, cls, member)))


def _own(cls: type) -> set[str]:
    """Names that cudago itself defines in a class or its bases."""
    ignored = {"__doc__", "__module__", "__slots__", "__dict__", "__weakref__", "__annotations__"}
    ignored |= {"__dataclass_fields__", "__dataclass_params__", "__match_args__", "__orig_bases__"}
    ignored |= {"__firstlineno__", "__static_attributes__", "__class__", "__getstate__"}
    ignored |= {"__annotate__", "__annotate_func__", "__annotations_cache__", "__weaklistoffset__"}
    found: set[str] = set()
    for base in cls.__mro__:
        if base.__module__.split(".")[0] == "cudago":
            found |= vars(base).keys() - ignored
    return found


def _settable(cls: type, member: str, static: Any) -> bool:
    if isinstance(static, property):
        return static.fset is not None
    if inspect.ismemberdescriptor(static):
        return False  # slots of the Python files: plain storage
    stub = _stub(cls, member)
    return stub is not None and any(
        isinstance(d, ast.Attribute) and d.attr == "setter" for f in stub for d in f.decorator_list
    )


def _constructor(cls: type) -> Iterator[Parameter]:
    yield from _of_signature(inspect.signature(cls), skip=0)


def _parameters(thing: Any, cls: type | None, name: str) -> Iterator[Parameter]:
    if isinstance(thing, (classmethod, staticmethod)):
        yield from _of_signature(inspect.signature(thing.__func__), isinstance(thing, classmethod))
    elif inspect.isfunction(thing):
        yield from _of_signature(inspect.signature(thing), skip=cls is not None)
    else:
        yield from _of_stub(cls, name)


def _of_signature(signature: inspect.Signature, skip: int) -> Iterator[Parameter]:
    for p in list(signature.parameters.values())[skip:]:
        if p.kind is not p.VAR_KEYWORD:
            yield Parameter(p.name, p.kind is p.KEYWORD_ONLY, p.kind is p.VAR_POSITIONAL)


@cache
def _stubs() -> dict[str, list[ast.FunctionDef]]:
    """Functions of _core.pyi, by ``name`` or ``Class.name``; overloads and setters in one list."""
    text = Path(cu.__file__).with_name("_core.pyi").read_text()
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in ast.parse(text).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for f in inside:
            if isinstance(f, ast.FunctionDef):
                found.setdefault(prefix + f.name, []).append(f)
    return found


def _stub(cls: type | None, name: str) -> list[ast.FunctionDef] | None:
    if cls is None:
        return _stubs().get(name)
    for base in cls.__mro__:
        if found := _stubs().get(f"{base.__name__}.{name}"):
            return found
    return None


def _of_stub(cls: type | None, name: str) -> Iterator[Parameter]:
    stub = _stub(cls, name)
    if stub is None:
        yield from _of_slot(cls, name)
        return
    seen = set()
    for f in stub:
        positional = [*f.args.posonlyargs, *f.args.args][cls is not None :]
        variadic = [f.args.vararg] if f.args.vararg else []
        rows = [(a, False, False) for a in positional] + [(a, False, True) for a in variadic]
        for a, by_keyword, many in rows + [(a, True, False) for a in f.args.kwonlyargs]:
            if a.arg not in seen:
                seen.add(a.arg)
                yield Parameter(a.arg, by_keyword, many)


# Slots of C types that the interface file leaves to `object`: number of operands.
_SLOTS = {"__eq__": 1, "__ne__": 1, "__lt__": 1, "__le__": 1, "__gt__": 1, "__ge__": 1}
_SLOTS |= {"__hash__": 0, "__repr__": 0, "__str__": 0, "__rsub__": 1, "__delitem__": 1}
_SLOTS |= {"__bool__": 0, "__len__": 0, "__del__": 0}


def _of_slot(cls: type | None, name: str) -> Iterator[Parameter]:
    owner = cls.__name__ if cls else "cudago"
    if name not in _SLOTS:
        raise LookupError(f"{owner}.{name} is public, but _core.pyi does not know it")
    if _SLOTS[name]:
        yield Parameter("other")
