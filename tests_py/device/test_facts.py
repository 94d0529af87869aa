# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What is asked through the cold half of the API."""

from __future__ import annotations

import pytest

# The n-th line of the package's Python raises, as Ctrl-C can; then the n-th allocation fails.
INTERRUPTED = """
import os, sys
import cudago as cu

device = cu.Device()
memory = device.graph_memory
facts = [lambda: memory.statistics, lambda: device.stream_priority_range, lambda: device.uuid,
         lambda: device.pci_bus_id, lambda: device.total_memory, lambda: device.free_memory]
package = os.path.dirname(cu.__file__)

def interrupted(fact, at):
    n = 0
    def trace(frame, event, arg):
        nonlocal n
        if not frame.f_code.co_filename.startswith(package):
            return None
        n += 1
        if n == at:
            raise KeyboardInterrupt
        return trace
    sys.settrace(trace)
    try:
        fact()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False

for fact in facts:
    expected = fact()
    at = 1
    while interrupted(fact, at):
        at += 1
    assert at > 3 and fact() == expected

try:
    import _testcapi
except ImportError:
    pass
else:
    for fact in facts:
        expected = fact()
        for n in range(100):
            _testcapi.set_nomemory(n, n + 1)
            try:
                fact()
            except MemoryError:
                pass
            finally:
                _testcapi.remove_mem_hooks()
        assert fact() == expected
"""


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_facts_survive_exceptions_at_any_line(script, driver):
    run = script(INTERRUPTED)
    assert (run.returncode, run.stderr) == (0, "")
