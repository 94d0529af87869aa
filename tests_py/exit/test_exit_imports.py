# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What imports when it is first used says that cudago is closed where Python imports nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import cudago as cu

FOLDER = Path(cu.__file__).parent

# Function, and a use of it.
USES = {
    "card": "g._repr_html_()",
    "glance": "repr(b)",
    "picture": "g._repr_svg_()",
    "Builder._copy": "g.memcpy(x, y)",
    "GraphProfile.to_svg": "profile.to_svg()",
    "GraphProfile._lines": "str(profile)",
    "Shown.to_svg": "g.to_svg()",
    "Shown.__str__": "str(g)",
    "Stored.save": "g.save('/tmp/never')",
    "VirtualMemoryResource.__new__": "cu.VirtualMemoryResource(device, ipc_enabled=True)",
    "Stored.load": "cu.Graph.load('/tmp/never')",
    "Kernel.bind": "f.bind(config, x)",
    "Kernel.info": "f.info()",
    "Buffer.ipc_descriptor": "b.ipc_descriptor",
    "Buffer.from_ipc_descriptor": "cu.Buffer.from_ipc_descriptor(pool, None, stream=s)",
    "Device.graph_memory": "device.graph_memory.statistics",
    "Device.monitor": "device.monitor.name",
    "Device.create_event": "device.create_event(ipc_enabled=True)",
    "PinnedMemoryResource.from_allocation_handle": (
        "cu.PinnedMemoryResource.from_allocation_handle(None)"
    ),
    "_Pooled.options": "pool.options",
    "_Pooled.statistics": "pool.statistics",
    "DeviceMemoryResource.from_allocation_handle": (
        "cu.DeviceMemoryResource.from_allocation_handle(device, None)"
    ),
    "_sizes": "cu.DeviceMemoryResource(device, pool=None)",
    "_kept_by_graphs": "cu.memory_summary()",
    "Event.ipc_descriptor": "event.ipc_descriptor",
    "Event.from_ipc_descriptor": "cu.Event.from_ipc_descriptor(device, None)",
    "Stream.capture": "s.capture().__enter__()",
}
# What a closed cudago does not come to.
NEVER = {
    "_opened", "Device.reset", "_where", "_Pooled._has"
}  # fmt: skip

SCRIPT = """
import builtins, os, traceback
import cudago as cu

device = cu.Device()
s = device.create_stream()
g = cu.Graph(device)
b = device.allocate(64, stream=s)
x, y = b.view("i4"), b.view("i4")
g.memset(b, 1)
step = g.instantiate()
profile = step.profile(s)
event = s.record()
pool = device.memory_resource
config = cu.LaunchConfig(1, 1)
f = cu.Program('extern "C" __global__ void f(int* x) {}').compile()["f"]

class Late:
    def __init__(self, write=os.write, told=traceback.format_exception_only):
        self.uses, self.write, self.told, self.closed = [%s], write, told, cu.ClosedError

    def __del__(self):
        for name, use in self.uses:
            try:
                use()
            except self.closed:
                self.write(1, b"closed\\n")
            except BaseException as e:
                self.write(1, f"{name}: {''.join(self.told(e))}".encode())
            else:
                self.write(1, b"done\\n")

builtins.late = Late()
"""


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_uses_at_the_end(script, driver):
    run = script(SCRIPT % ", ".join(f"({n!r}, lambda: {use})" for n, use in USES.items()))
    lines = run.stdout.splitlines()
    assert (run.returncode, run.stderr) == (0, "")
    wrong = [line for line in lines if line not in ("closed", "done")]
    assert not wrong, "\n".join(wrong)
    assert len(lines) == len(USES)
    assert lines.count("closed") > len(USES) / 2


def functions(node: ast.AST, within: str = ""):
    """Yield the functions with a ``with late`` block."""
    for child in ast.iter_child_nodes(node):
        name = f"{within}{getattr(child, 'name', '')}"
        if isinstance(child, ast.FunctionDef) and any(
            isinstance(inner, ast.With) and ast.unparse(inner.items[0]) == "late"
            for inner in ast.walk(child)
        ):
            yield name
        elif isinstance(child, ast.ClassDef):
            yield from functions(child, f"{name}.")


def test_all_functions_that_import_are_used():
    found = {
        name
        for file in FOLDER.rglob("*.py")
        if file.name != "_import_at_exit.py"
        for name in functions(ast.parse(file.read_text()))
    }
    assert found == USES.keys() | NEVER
