# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The ways in which an exchange of tensors can go wrong, by number, and the tests of each."""

from __future__ import annotations

import ast
import gc
import threading
from pathlib import Path

import pytest

import cudago as cu
from cudago.testing import settle

np = pytest.importorskip("numpy")

ROOM = Path(__file__).parent

# What goes wrong; tests that show what happens then. "file::test", the file without "test_".
MODES = {
    1: ("a capsule is never consumed", ["export::test_an_unconsumed_capsule_gives_back_its_count"]),
    2: (
        "an importer never calls the deleter",
        [
            "import::test_shares_memory_and_deletes_once",
            "import::test_ten_thousand_imports_leave_nothing",
        ],
    ),
    3: ("a capsule is consumed twice", ["import::test_a_capsule_is_consumed_once"]),
    4: ("two threads consume at once", ["failure_modes::test_threads_that_consume_one_capsule"]),
    5: ("an error between the renaming and the owner", ["import::test_no_memory"]),
    6: (
        "an error before the renaming",
        ["import::test_what_cannot_be_described_is_refused_and_left_alone"],
    ),
    7: (
        "a destructor meets an exception",
        ["export::test_a_capsule_dropped_while_an_exception_is_on_its_way"],
    ),
    8: (
        "a deleter on another thread",
        [
            "export::test_deleters_on_other_threads",
            "trace::test_a_deleter_on_a_thread_that_python_does_not_know",
        ],
    ),
    9: ("a deleter after the interpreter", ["numpy::test_at_the_end_of_the_interpreter"]),
    10: ("a deleter in a forked child", ["numpy::test_in_a_forked_child"]),
    11: (
        "a deleter in a host callback or a capture",
        [
            "failure_modes::test_a_deleter_in_a_host_callback",
            "failure_modes::test_a_deleter_in_a_capture",
        ],
    ),
    12: ("the exporter's object goes first", ["export::test_a_consumer_outlives_the_tensor"]),
    13: (
        "released while work uses it",
        ["lent::test_kept_until_the_launch_ends_and_released_without_a_call"],
    ),
    14: ("the deleter is missing", ["import::test_a_missing_deleter_is_not_called"]),
    15: (
        "another major version",
        ["import::test_what_cannot_be_described_is_refused_and_left_alone"],
    ),
    16: ("strides with gaps", ["import::test_layouts", "torch::test_layouts_from_torch"]),
    17: (
        "negative strides",
        ["import::test_layouts", "export::test_negative_strides_are_refused_unless_copied"],
    ),
    18: ("no dimensions", ["import::test_layouts", "numpy::test_layouts_to_numpy"]),
    19: ("no elements and no data", ["import::test_an_empty_tensor_is_still_deleted"]),
    20: ("a byte offset", ["import::test_layouts", "export::test_what_is_exported"]),
    21: (
        "work in the wrong order",
        [
            "lent::test_our_work_comes_after_the_librarys",
            "round_trips::test_every_export_comes_after_what_was_queued_before_it",
            "export::test_what_a_consumer_must_not_ask",
        ],
    ),
    22: ("freed on the wrong stream", ["lent::test_memory_of_ours_that_came_back"]),
    23: ("another device", ["lent::test_what_is_refused", "round_trips::test_where_it_is_to_be"]),
    24: (
        "copy= and dl_device=",
        ["export::test_copies", "round_trips::test_a_copy_that_is_forbidden"],
    ),
    25: (
        "read-only in a capsule that cannot say so",
        ["import::test_read_only_stays_read_only", "numpy::test_read_only_both_ways"],
    ),
    26: (
        "lanes and element types that nobody knows",
        [
            "import::test_element_types",
            "import::test_what_cannot_be_described_is_refused_and_left_alone",
        ],
    ),
    27: (
        "hostile numbers",
        [
            "import::test_what_cannot_be_described_is_refused_and_left_alone",
            "import::test_an_error_says_what_the_tensor_has",
            "lent::test_hostile_numbers",
        ],
    ),
    28: (
        "a cycle of exporter and consumer",
        ["import::test_cycles_need_no_collector"],
    ),
}


def test_every_mode_has_its_tests():
    assert list(MODES) == list(range(1, 29))
    there = {
        f"{file.stem.removeprefix('test_')}::{node.name}"
        for file in ROOM.glob("test_*.py")
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    named = [test for _, tests in MODES.values() for test in tests]
    assert all(tests for _, tests in MODES.values())
    assert [test for test in named if test not in there] == []


def test_threads_that_consume_one_capsule(producer):
    """One gets it, and its deleter runs once."""
    for _ in range(200):
        p = producer()
        capsule = p.__dlpack__()
        p.capsule = None
        start = threading.Barrier(2)
        taken, refused = [], []

        def consume(capsule=capsule, start=start, taken=taken, refused=refused) -> None:
            start.wait()
            try:
                taken.append(cu.from_dlpack(capsule))
            except BufferError as e:
                refused.append(str(e))

        threads = [threading.Thread(target=consume) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        del capsule, consume, threads, t
        assert len(taken) == len(refused) == 1
        assert "consumed before" in refused[0]
        assert p.deleted == 0
        taken.clear()
        gc.collect()
        assert p.deleted == 1


def test_a_deleter_in_a_host_callback(producer, device, stream):
    """Ours releases memory of the stream that waits for the callback; theirs is called there."""
    p = producer()
    held = [cu.from_dlpack(p), cu.zeros((64,), "i4", stream=stream)]
    stream.sync()
    held.append(held[1].__dlpack__(stream=-1, max_version=(1, 0)))
    stream.callback(held.clear)
    stream.sync()
    settle()
    assert held == []
    assert p.deleted == 1


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_a_deleter_in_a_capture(producer, device, stream, mode):
    """The capture goes on, whatever the release does."""
    p = producer()
    held = [cu.from_dlpack(p), cu.zeros((64,), "i4", stream=stream)]
    work = cu.zeros((64,), "i4", stream=stream)
    stream.sync()
    held.append(held[1].__dlpack__(stream=-1, max_version=(1, 0)))
    with stream.capture(mode) as graph:
        work.fill(1, stream=stream)
        held.clear()
        assert p.deleted == 1
        settle()
        work.fill(2, stream=stream)
    with graph, graph.instantiate() as step:
        step.launch(stream)
        assert work.numpy(stream=stream).tolist() == [2] * 64
