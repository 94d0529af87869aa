# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What docs/concepts/errors.rst says: each guarantee has a test, and each exception a row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cudago as cu
from cudago import errors

ROOT = Path(__file__).resolve().parents[2]
HERE = "tests_py/layout/test_guarantees.py"

TESTS = {
    1: [
        "cuda/faults_test.go::TestFailedCallLeavesNothing",
        "graph/fault_test.go::TestEveryDriverCallMayFail",
        "tests_py/api/test_errors.py::test_failed_calls_leave_nothing_behind",
    ],
    2: [
        "graph/exec_test.go::TestRejectedUpdateChangesNothing",
        "tests_py/graph/test_graph.py::test_wrong_operands_add_nothing",
        "tests_py/graph/test_update.py::test_refused_updates_change_nothing",
    ],
    3: [
        "cuda/context_test.go::TestEnterRestoresTheCallersContext",
        "cuda/faults_test.go::TestFailedCallLeavesNothing",
    ],
    4: [
        "tests_py/kernel/test_kernel_args.py::test_wrong_count",
        "tests_py/kernel/test_launch.py::test_launch_checks_its_arguments",
        "tests_py/kernel/test_launch.py::test_shapes_that_the_device_cannot_run",
    ],
    5: ["tests_py/api/test_errors.py::test_a_driver_error_has_code_name_and_operation"],
    6: [
        "tests_py/interop/test_import.py::test_an_error_of_the_producer_is_its_own",
        "tests_py/kernel/test_launch.py::test_what_an_index_raises_comes_out_unchanged",
        "tests_py/lifetime/test_finalize.py::test_an_exception_of_the_function_is_raised_by_a_call",
    ],
    7: [f"{HERE}::test_a_second_failure_is_a_note_on_the_first"],
    8: [
        "pyext/api/api_test.go::TestPanicsBecomeErrors",
        "tests_py/api/test_errors.py::test_a_panic_is_an_exception_and_the_process_goes_on",
    ],
    9: [
        "cuda/faults_test.go::TestFailedReleaseWarns",
        f"{HERE}::test_a_refused_release_is_a_warning",
    ],
    10: [
        "tests_py/lifetime/test_finalize.py::test_an_exception_is_reported_when_the_object_dies",
        "tests_py/graph/test_callback.py::test_an_exception_in_a_callback_is_reported_and_the_graph_goes_on",
    ],
    11: ["tests_py/exit/test_interrupt.py::test_interrupted_waits"],
}


def test_every_guarantee_has_tests():
    page = (ROOT / "docs" / "concepts" / "errors.rst").read_text()
    numbers = [int(n) for n in re.findall(r"^(\d+)\. ", page, re.M)]
    assert numbers == list(range(1, len(numbers) + 1)) == sorted(TESTS)


@pytest.mark.parametrize("name", sorted({name for names in TESTS.values() for name in names}))
def test_the_test_is_there(name):
    file, _, function = name.partition("::")
    keyword = "func" if file.endswith(".go") else "def"
    assert f"\n{keyword} {function}(" in (ROOT / file).read_text()


def test_the_table_has_every_exception_with_its_bases():
    page = (ROOT / "docs" / "concepts" / "errors.rst").read_text()
    rows = re.findall(r"^   \* - ``(\w+)``\n     - (.+)$", page, re.M)
    told = {name: bases.replace("`", "") for name, bases in rows}
    assert told == {
        name: ", ".join(base.__name__ for base in getattr(errors, name).__bases__)
        for name in errors.__all__
        if name != "CUDAWarning"  # which is not raised
    }


def test_a_second_failure_is_a_note_on_the_first(stream):
    with pytest.raises(LookupError, match="the first") as e, stream.capture() as graph:
        cu._core._capture_end(graph, True)  # so that the block has nothing to end
        raise LookupError("the first")
    notes = ["The capture could not be ended: the graph is not being captured"]
    assert e.value.__notes__ == notes


def test_a_refused_release_is_a_warning():
    text = r"^cuMemFreeAsync failed with CUDA_ERROR_INVALID_VALUE \(1\) in a release: an arg"
    with pytest.warns(cu.CUDAWarning, match=text):
        errors._warn("cuMemFreeAsync", 1)
