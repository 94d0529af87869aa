# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Code can be closed, and what was obtained from it lives on."""

from __future__ import annotations

import gc
import mmap
import os
import tempfile

import pytest

import cudago as cu

SOURCE = """
__device__ int hits;
extern "C" __global__ void hit() { hits++; }
extern "C" __global__ void other() {}
"""


@pytest.fixture
def code(driver):
    """Freshly compiled code."""
    with cu.Program(SOURCE).compile() as made:
        yield made


def open_codes() -> int:
    gc.collect()
    return cu.live_objects().get("ObjectCode", 0)


def test_closed_code_gives_nothing_more(code, tmp_path):
    code.close()
    code.close()
    assert code.is_closed
    assert code.kind == "ptx" or code.kind == "cubin"
    assert repr(code) == f"<cudago.ObjectCode: {code.kind}, closed>"
    for use in (
        lambda: code["hit"],
        lambda: code.get_kernel("hit"),
        lambda: code.get_global("hits"),
        lambda: code.code,
        lambda: code.ptx,
        lambda: code.kernels,
        lambda: code.save(tmp_path / "code"),
        lambda: cu.Linker(code).link(),
        lambda: code.__enter__().code,
    ):
        with pytest.raises(cu.ClosedError, match="object code is closed"):
            use()
    assert not (tmp_path / "code").exists()


def test_names_in_code(code):
    assert set(code) == set(code.kernels) == {"hit", "other"}
    assert all(name in code for name in (*code, "hit", "hits"))
    for stranger in ("miss", "", "\udcff", 5, None, code["hit"]):
        assert stranger not in code
    code.close()
    for use in (lambda: "hit" in code, lambda: list(code)):
        with pytest.raises(cu.ClosedError, match="object code is closed"):
            use()


def test_kernels_and_buffers_keep_working(code, stream):
    with code as same:
        assert same is code and not code.is_closed
        hit, hits = code["hit"], code.get_global("hits").view("int32")
    assert code.is_closed
    hit[1, 1, stream]()
    assert hits.numpy(stream=stream).tolist() == [1]
    again = hit.object_code
    assert again is not code and not again.is_closed and again is hit.object_code
    assert again["hit"] is hit
    again["other"][1, 1, stream]()
    stream.sync()


def test_it_is_unloaded_once_all_are_gone(code, stream):
    before = open_codes()
    kernel = code["hit"]
    code.close()
    assert open_codes() == before
    kernel[1, 1, stream]()
    stream.sync()
    del kernel
    assert open_codes() == before - 1


def test_without_kernels_it_is_unloaded_at_once(code):
    before = open_codes()
    code.close()
    assert open_codes() == before - 1


def test_a_descriptor_is_no_path(code):
    with tempfile.TemporaryFile() as file:
        descriptor = os.dup(file.fileno())
        with pytest.raises(TypeError, match=r"expected str, bytes or os\.PathLike object, not int"):
            code.save(descriptor)
        os.close(descriptor)  # it is still open
        assert not file.read()


@pytest.mark.parametrize("make", [cu.ObjectCode.from_cubin, cu.ObjectCode.from_ptx])
def test_code_of_more_than_2_gib(make):
    """It was cut to its size modulo 4 GiB."""
    with mmap.mmap(-1, 2**32 + 5) as memory, pytest.raises(ValueError, match="got 4294967301"):
        make(memory)
