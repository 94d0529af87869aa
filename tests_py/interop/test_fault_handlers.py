# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A fault of host memory is an exception beside the handlers that other libraries bring."""

from __future__ import annotations

import importlib.util
import signal
import sys

import pytest

from ..exit.faulting import WHEN, fault, program

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)

# What installs a library's handlers, and what it says of a fault in C. Numba and Triton have none:
# with them it is faulthandler's, behind their compilers.
HANDLERS = {
    "torch, in workers": (
        "import torch; torch._C._set_worker_signal_handlers()",
        "ERROR: Unexpected segmentation fault encountered in worker.",
    ),
    "torch, with stacks": (
        "import torch; torch._C._set_print_stack_traces_on_fatal_signal(True)",
        "SIGSEGV(11)",
    ),
    "jax": (
        "import jax; from jax._src import util; util.install_failure_signal_handler()",
        "*** SIGSEGV",
    ),
    "tvm_ffi": ("import tvm_ffi", "!!!!!!! Segfault encountered !!!!!!!"),
    "numba": (
        "import numba; numba.njit(lambda x: x + 1)(1); faulthandler.enable()",
        "Fatal Python error: Segmentation fault",
    ),
    "triton": (
        "import triton._C.libtriton; faulthandler.enable()",
        "Fatal Python error: Segmentation fault",
    ),
}


@pytest.fixture(params=HANDLERS)
def handlers(request) -> tuple[str, str]:
    """What installs them, and what they say."""
    library = request.param.partition(",")[0]
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    return HANDLERS[request.param]


# Those in between: tests_py/exit/test_fault_handlers.py, with faulthandler.
@pytest.mark.parametrize("when", [WHEN[1], WHEN[-1]])
@pytest.mark.parametrize(("make", "copied"), [("truncated", True), ("protected", False)])
def test_a_fault_is_an_exception(script, driver, handlers, make, copied, when):
    """And a fault of somebody's code in C still goes to the library's handler."""
    install, said = handlers
    file = script.directory / "program.py"
    end = fault(make, copied=copied, afterwards="ctypes.string_at(8)")
    file.write_text(program(when, install) + end)
    run = script.run([sys.executable, str(file)])
    assert run.stdout == "DeviceFaultError\n", run.stderr
    assert run.returncode in (-signal.SIGSEGV, -signal.SIGABRT)
    assert said in run.stderr


DATA = """
class Data:
    def __len__(self):
        return 1
    def __getitem__(self, index):
        array, take_away = truncated()
        x = cu.zeros(1 << 18, "i4", stream=s)
        s.sync()
        take_away()
        try:
            x.copy_from(array, stream=s)
            s.sync()
        except cu.DeviceFaultError as e:
            return type(e).__name__

if __name__ == "__main__":
    from torch.utils.data import DataLoader
    for said in DataLoader(Data(), num_workers=1, multiprocessing_context="spawn"):
        print(said, flush=True)
"""


def test_in_the_worker_of_a_loader(script, driver):
    """PyTorch installs its handlers there, before the worker imports the program."""
    pytest.importorskip("torch")
    file = script.directory / "program.py"
    file.write_text(program() + DATA)
    run = script.run([sys.executable, str(file)])
    assert (run.returncode, run.stdout) == (0, "['DeviceFaultError']\n"), run.stderr
