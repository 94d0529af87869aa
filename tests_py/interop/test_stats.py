# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Exchanges are counted by the way they went, and by library."""

from __future__ import annotations

import ctypes
import gc

import pytest

import cudago as cu
from cudago import _core

from .test_table import table  # noqa: F401  (a fixture)


def test_imports_are_counted_by_way_and_library(changes, producer):
    of = type("Producer", (producer,), {"__module__": "someone.deep.inside"})
    before = cu.dlpack.stats()
    held = [cu.from_dlpack(of()), cu.from_dlpack(of(versioned=False)), cu.from_dlpack(of())]
    after = cu.dlpack.stats()
    assert changes(before.imports, after.imports) == {"capsule": (2, 2), "legacy capsule": (1, 1)}
    assert changes(before.peers, after.peers) == {"someone": (3, 3)}
    assert after.imports_taken - before.imports_taken == 3
    del held[0]
    after = cu.dlpack.stats()
    assert changes(before.peers, after.peers) == {"someone": (3, 2)}
    held.clear()
    assert changes(before.peers, cu.dlpack.stats().peers) == {"someone": (3, 0)}


def test_a_kernel_argument_is_an_import_of_its_library(producer, device, stream):
    of = type("Producer", (producer,), {"__module__": "launched"})
    with device.allocate(64, stream=stream) as buffer:
        buffer.copy_from(of((16,)), stream=stream)
        stream.sync()
        gc.collect()
        _core._collect_prove("")
    assert cu.dlpack.stats().peers["launched"].total == 1


def test_exports_are_counted_by_way(changes, tensor):
    before = cu.dlpack.stats()
    held = [tensor.__dlpack__(max_version=(1, 0)), tensor.__dlpack__()]
    after = cu.dlpack.stats()
    assert changes(before.exports, after.exports) == {"capsule": (1, 1), "legacy capsule": (1, 1)}
    assert after.exports_made - before.exports_made == 2
    held.clear()
    after = cu.dlpack.stats()
    assert changes(before.exports, after.exports) == {"capsule": (1, 0), "legacy capsule": (1, 0)}
    assert after.exports_released - before.exports_released == 2


def test_a_bare_capsule_is_of_nobody(changes, producer):
    before = cu.dlpack.stats()
    t = cu.from_dlpack(producer().__dlpack__())
    assert changes(before.peers, cu.dlpack.stats().peers) == {"unknown": (1, 1)}
    t.close()


def test_the_exchange_table(changes, table, producer, opened, tensor, trace):  # noqa: F811
    before = cu.dlpack.stats()
    address = ctypes.c_void_p()
    assert table.from_py(tensor, ctypes.byref(address)) == 0
    assert changes(before.exports, cu.dlpack.stats().exports) == {"exchange table": (1, 1)}
    (export,) = trace.live
    assert (export.direction, export.way, export.peer) == ("export", "exchange table", None)
    managed = opened.Versioned.from_address(address.value)
    managed.deleter(address.value)
    assert trace.live == ()
    assert changes(before.exports, cu.dlpack.stats().exports) == {"exchange table": (1, 0)}

    theirs = producer((2, 2))
    made = ctypes.py_object()
    assert table.to_py(ctypes.addressof(theirs.managed), ctypes.byref(made)) == 0
    (taken,) = trace.live
    assert (taken.direction, taken.way, taken.peer) == ("import", "exchange table", "unknown")
    t = made.value
    ctypes.pythonapi.Py_DecRef(made)
    del made
    t.close()
    assert trace.live == ()
    assert theirs.deleted == 1


def test_the_array_interface(changes, tensor, stream, device, trace):
    array = type("Array", (), {"__module__": "arrays"})()
    before = cu.dlpack.stats()
    exports = hasattr(tensor, "__cuda_array_interface__")  # of NVIDIA's driver alone
    array.__cuda_array_interface__ = {
        "version": 3,
        "shape": (6,),
        "typestr": "<f4",
        "data": (tensor.handle, False),
        "stream": 1,
    }
    with device.allocate(tensor.nbytes, stream=stream) as buffer, cu.Graph() as graph:
        node = graph.memcpy(buffer, array)
        after = cu.dlpack.stats()
        assert changes(before.imports, after.imports) == {"array interface": (1, 1)}
        assert changes(before.peers, after.peers) == {"arrays": (1, 1)}
        assert changes(before.exports, after.exports) == (
            {"array interface": (1, 0)} if exports else {}
        )
        assert after[:4] == before[:4]
        del node
    gc.collect()
    assert changes(before.peers, cu.dlpack.stats().peers) == {"arrays": (1, 0)}
    assert trace.live == ()


@pytest.mark.parametrize("module", [None, 3, "", ".", "ä" * 100, "x" * 63, "x" * 64, "\ud800"])
def test_a_module_without_a_sound_name(changes, producer, module):
    of = type("Producer", (producer,), {"__module__": module})
    before = cu.dlpack.stats().peers
    t = cu.from_dlpack(of())
    ((name, counts),) = changes(before, cu.dlpack.stats().peers).items()
    assert counts == (1, 1)
    assert name == (module[: 31 if module[0] == "ä" else 63] if len(str(module)) > 9 else "unknown")
    t.close()


def test_ever_new_libraries_are_one_in_the_end(script):
    """In a process of its own, which knows no further library afterwards."""
    run = script(
        """
        import numpy as np
        import cudago as cu

        array = np.zeros(4)
        class Theirs:
            def __dlpack__(self, **options):
                return array.__dlpack__(**options)
            def __dlpack_device__(self):
                return array.__dlpack_device__()
        for i in range(300):
            of = type("Producer", (Theirs,), {"__module__": f"made_up_{i}"})
            cu.from_dlpack(of())
        peers = cu.dlpack.stats().peers
        assert len(peers) <= 256, len(peers)
        assert peers["unknown"].total >= 44, peers
        """
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_an_import_that_fails_counts_nothing(producer):
    before = cu.dlpack.stats()
    with pytest.raises(BufferError):
        cu.from_dlpack(producer(version=(2, 0), destructor=True))
    assert cu.dlpack.stats() == before
