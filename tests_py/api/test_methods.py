# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Methods of the public classes: each class has its own, which is the quickest to call."""

from __future__ import annotations

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
