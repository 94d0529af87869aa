# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Methods of the public classes: each class has its own, which is the quickest to call."""

from __future__ import annotations

import gc
import weakref
from types import MethodDescriptorType

import pytest

import cudago as cu

CLASSES = [cu.Device, cu.Event, cu.Graph, cu.GraphExec, cu.Kernel, cu.MemoryResource, cu.Stream]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_native_methods_are_of_the_public_class(cls):
    native = next(base for base in cls.__mro__ if base.__module__ == "cudago._core")
    assert native is not cls
    names = [name for name, m in vars(native).items() if isinstance(m, MethodDescriptorType)]
    found = {name: getattr(cls, name) for name in names}
    own = [m for m in found.values() if isinstance(m, MethodDescriptorType)]  # others override one
    assert own
    assert {m.__objclass__ for m in own} == {cls}


def program():
    """A program with a kernel."""
    return cu.Program('extern "C" __global__ void f() {}')


@pytest.mark.parametrize(
    "make",
    [
        program,
        lambda: program().compile(),
        lambda: program().compile()["f"],
        lambda: cu.elementwise("float x", "float z", "z = x"),
        lambda: cu.reduce("float x", "float z", "a + b"),
        lambda: cu.graph(lambda: None),
    ],
)
def test_weak_references(driver, make):
    thing = make()
    told = weakref.ref(thing)
    assert told() is thing
    del thing
    gc.collect()
    assert told() is None
