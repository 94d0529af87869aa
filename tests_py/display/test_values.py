# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The elements on the card of a tensor."""

from __future__ import annotations

import pytest

import cudago as cu
from cudago._display import preview

from .card import card, shown

# Values are shown only while every stream of the process is known.
pytestmark = pytest.mark.early

np = pytest.importorskip("numpy")

DTYPES = {
    "bool": (["True", "False"], [True, False]),
    "int8": (["-1", "2"], [-1, 2]),
    "uint64": (["18446744073709551615", "0"], [2**64 - 1, 0]),
    "float16": (["0.5", "nan"], [0.5, float("nan")]),
    "bfloat16": (["0.5", "-inf"], [0.5, float("-inf")]),
    "float64": (["0.33333", "1e+300"], [1 / 3, 1e300]),
    "complex64": (["1+2j", "-1j"], [1 + 2j, -1j]),
    "complex32": (["1+2j", "-1j"], [1 + 2j, -1j]),
    "float8_e4m3fn": (["0.5", "2"], [0.5, 2]),
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_each_kind(dtype, stream):
    if dtype.startswith(("bfloat", "float8", "complex32")):
        extended = pytest.importorskip("ml_dtypes")
        if not hasattr(extended, dtype):
            pytest.skip(f"this ml_dtypes has no {dtype}")
    words, elements = DTYPES[dtype]
    with cu.empty(2, dtype, stream=stream) as t:
        for i, element in enumerate(elements):
            with cu.full(1, element, dtype, stream=stream) as one:
                t[i : i + 1].copy_from(one, stream=stream)
        stream.sync()
        assert [[w.replace("(", "").replace("-0-1j", "-1j") for w in row] for row in shown(t)] == [
            words
        ]


def test_the_edges_of_a_matrix(stream):
    array = np.arange(12 * 20).reshape(12, 20)
    with cu.asarray(array, "int32", stream=stream) as t:
        words = shown(t)
        assert words[3] == ["\u2026"] * 7
        for i, row in enumerate([0, 1, 2, None, 9, 10, 11]):
            if row is not None:
                assert words[i] == [*map(str, array[row, :3]), "\u2026", *map(str, array[row, -3:])]
        assert shown(t.T[::-1, :2])[0] == ["19", "39"]
        assert shown(t[5]) == [["100", "101", "102", "\u2026", "117", "118", "119"]]
        assert shown(t[5, 5]) == [["105"]]
    with cu.asarray(array.reshape(2, 6, 20), "int32", stream=stream) as t:
        assert card(t).rows["values"] == "of [0, :, :], as they are now:"
        assert shown(t)[-1][-1] == str(array[5, -1])


def test_of_a_large_tensor_only_edges_are_copied(stream, monkeypatch):
    copied, formatted = [], preview._formatted
    monkeypatch.setattr(
        preview, "_formatted", lambda t, np: copied.append(t.size) or formatted(t, np)
    )
    with cu.zeros((1 << 12, 1 << 12), "int8", stream=stream) as t:
        stream.sync()  # a card would wait a moment only
        assert shown(t)[0] == [*"000", "\u2026", *"000"]
    assert copied == [9, 9, 9, 9]


@pytest.mark.parametrize("shape", [0, (0, 3), (3, 0), (2, 0, 2)])
def test_no_elements(shape, stream):
    with cu.empty(shape, stream=stream) as t:
        assert card(t).rows["values"] == "not shown: there are no elements"


def test_elements_of_less_than_a_byte(stream):
    with cu.empty((9, 9), "float4_e2m1fn", stream=stream) as t:
        assert card(t).rows["values"] == "not shown: elements of less than a byte are packed"


def test_values_of_host_memory(pinned):
    view = pinned[:12].view("int32")
    memoryview(view)[1] = 7
    assert shown(view) == [["0", "7", "0"]]
    view.close()
    assert shown(cu.from_dlpack(np.arange(4)[::-1])) == [["3", "2", "1", "0"]]
    readonly = np.ones(2, "f4")
    readonly.flags.writeable = False
    assert card(cu.from_dlpack(readonly)).rows["address"].endswith(", read-only")


def test_work_that_was_queued_is_seen(stream, kernels):
    config = cu.LaunchConfig(grid=1, block=32)
    with cu.zeros(4, "int32", stream=stream) as t:
        for _ in range(100):
            cu.launch(stream, config, kernels["add"], t, 1, 4)
        stream.sync()
        cu.launch(stream, config, kernels["add"], t, 1, 4)
        assert shown(t) == [["101"] * 4]
