# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Each kind of argument, for each type of parameter, on each way to a kernel.

A cell is taken, and the kernel sees what it should; or it is refused by a named exception before
anything happened. All ways agree.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import cudago as cu  # noqa: E402

from ..installed import ROOT  # noqa: E402
from .arguments import (  # noqa: E402
    KINDS,
    ONE,
    PARAMETERS,
    POINTEES,
    ROOM,
    RULES,
    SOURCE,
    Dlpack,
    Parameter,
    World,
    address_of,
    alignment,
    expected,
    expected_by_expression,
)

UNTOUCHED = 0xAA


class Ways:
    """What a kernel is launched by. Each raises, or has launched it with the argument."""

    def __init__(self, world: World, p: Parameter) -> None:
        self.device, self.stream = world.device, world.stream
        types = (p.ctype, "unsigned char*")
        self.kernel = world.code.get_kernel(p.kernel, strict_types=types)
        self.nothing, self.out = world.code["nothing"], world.out
        self.kept = contextlib.ExitStack()
        self.graph = self.kept.enter_context(cu.Graph(self.device))
        self.node = self.graph.launch(ONE, self.kernel, p.good, self.out, name="k")
        self.slotted = self.kept.enter_context(cu.Graph(self.device))
        self.slotted.launch(ONE, self.kernel, cu.slot("it", p.good), self.out, name="k")
        self.steps = [self.kept.enter_context(self.graph.instantiate()) for _ in range(4)]
        self.captured = self.kept.enter_context(self.device.create_stream())
        self.slots = self.kept.enter_context(self.slotted.instantiate())
        self.bound = self.kept.enter_context(self.kernel.bind(ONE, p.good, self.out))

    def run(self, graph: cu.Graph) -> None:
        with graph.instantiate() as step:
            step.launch(self.stream)

    # --- at once

    def launch(self, arg: Any) -> None:
        cu.launch(self.stream, ONE, self.kernel, arg, self.out)

    def launch_by_name(self, arg: Any) -> None:
        cu.launch(self.stream, ONE, self.kernel, out=self.out, p=arg)

    def brackets(self, arg: Any) -> None:
        self.kernel[1, 1, self.stream](arg, self.out)

    # --- into a graph

    def graph_launch(self, arg: Any) -> None:
        with cu.Graph(self.device) as graph:
            try:
                graph.launch(ONE, self.kernel, arg, self.out)
            except BaseException:
                assert not graph.nodes
                raise
            self.run(graph)

    def node_launch(self, arg: Any) -> None:
        with cu.Graph(self.device) as graph:
            graph.launch(ONE, self.nothing).launch(ONE, self.kernel, arg, self.out)
            self.run(graph)

    def slot(self, arg: Any) -> None:
        with cu.Graph(self.device) as graph:
            graph.launch(ONE, self.kernel, cu.slot("it", arg), self.out)
            self.run(graph)

    def capture(self, arg: Any) -> None:
        with self.captured.capture() as graph:  # which no work on the arguments waits for
            try:
                cu.launch(self.captured, ONE, self.kernel, arg, self.out)
            except BaseException as error:
                failed = error
            else:
                failed = None
        with graph:
            if failed is not None:
                assert not graph.nodes
                raise failed
            self.run(graph)

    # --- to be launched later

    def bind(self, arg: Any) -> None:
        with self.kernel.bind(ONE, arg, self.out) as bound:
            bound(self.stream)

    def update_of_bound(self, arg: Any) -> None:
        self.bound.update({0: arg})
        self.bound(self.stream)

    def update_of_node(self, arg: Any) -> None:
        self.node.update(ONE, self.kernel, arg, self.out)
        self.run(self.graph)

    def update_of_node_by_position(self, arg: Any) -> None:
        self.node.update({0: arg})
        self.run(self.graph)

    def update_of_node_by_name(self, arg: Any) -> None:
        self.node.update(p=arg)
        self.run(self.graph)

    def update(self, arg: Any) -> None:
        self.steps[0]["k"].update(ONE, self.kernel, arg, self.out)
        self.steps[0].launch(self.stream)

    def update_by_position(self, arg: Any) -> None:
        self.steps[1]["k"].update({0: arg})
        self.steps[1].launch(self.stream)

    def update_by_name(self, arg: Any) -> None:
        self.steps[2]["k"].update(p=arg)
        self.steps[2].launch(self.stream)

    def update_by_graph(self, arg: Any) -> None:
        with cu.Graph(self.device) as graph:
            graph.launch(ONE, self.kernel, arg, self.out, name="k")
            self.steps[3].update(graph)
        self.steps[3].launch(self.stream)

    def bind_slot(self, arg: Any) -> None:
        self.slots.bind(it=arg)
        self.slots.launch(self.stream)


# Each function that takes a kernel's arguments, and what stands for it here.
ENTRY_POINTS = {
    "launch": (Ways.launch, Ways.launch_by_name, Ways.capture),
    "ConfiguredKernel.__call__": (Ways.brackets,),
    "Graph.launch": (Ways.graph_launch, Ways.slot),
    "Node.launch": (Ways.node_launch,),
    "Node.update": (
        Ways.update_of_node,
        Ways.update_of_node_by_position,
        Ways.update_of_node_by_name,
    ),
    "ExecNode.update": (Ways.update, Ways.update_by_position, Ways.update_by_name),
    "GraphExec.update": (Ways.update_by_graph,),
    "GraphExec.bind": (Ways.bind_slot,),
    "Kernel.bind": (Ways.bind,),
    "BoundLaunch.update": (Ways.update_of_bound,),
}
WAYS = [way for ways in ENTRY_POINTS.values() for way in ways]


@pytest.fixture(scope="module")
def world(device: cu.Device) -> Iterator[World]:
    """What arguments are made of, and where kernels write."""
    with device.create_stream() as stream, cu.PinnedMemoryResource() as pinned:
        code = cu.Program(SOURCE).compile()
        made = World(device, stream, code)
        with made.open, pinned.allocate(ROOM) as out:
            made.out = out
            yield made
            stream.sync()


@pytest.fixture(scope="module")
def things(world: World) -> Iterator[dict[str, Any]]:
    """An object of each kind."""
    made = {name: kind.make(world) for name, kind in KINDS.items()}
    yield made
    made.clear()


def _outcome(way: Callable[..., None], ways: Ways, arg: Any) -> bytes | Exception:
    """Return what the kernel wrote down, or what was raised."""
    try:
        way(ways, arg)
    except Exception as error:  # whichever it is
        ways.stream.sync()
        ran = bytes(memoryview(ways.out)[: ROOM - 1]) != bytes([UNTOUCHED]) * (ROOM - 1)
        return AssertionError("the kernel ran") if ran else error.with_traceback(None)
    ways.stream.sync()
    return bytes(memoryview(ways.out)[: ROOM - 1])


def _differs(name: str, way: Callable[..., None], wanted: Any) -> Any:
    """Return what is expected of a cell, where not all ways agree."""
    if "closed" in name and KINDS[name].own and way is Ways.slot and "pointer" not in name:
        return cu.ClosedError  # of the slot itself, which does not know the parameter yet
    if name == "condition" and way is Ways.capture and wanted is ValueError:
        return b"handle"  # captures are not told whose it is
    return wanted


def _matches(found: bytes | Exception, wanted: bytes | type[Exception]) -> bool:
    if isinstance(wanted, bytes):
        is_right = isinstance(found, bytes)
        if wanted == b"handle":
            return is_right and found[8] == UNTOUCHED != found[7]
        if wanted == b"map":
            return is_right and set(found) != {UNTOUCHED}
        rest = bytes([UNTOUCHED]) * (ROOM - 1 - len(wanted))
        return is_right and found == wanted[: ROOM - 1] + rest
    if not isinstance(found, wanted):
        return False
    named = re.search(
        r"parameter 0|^(buffer|tensor) is closed|field 'at'|a condition|Condition", str(found)
    )
    return wanted is LookupError or named is not None


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_arguments(parameter, world, things):
    p = PARAMETERS[parameter]
    ways = Ways(world, p)
    view = memoryview(world.out)
    wrong = []
    with ways.kept, view:
        for name, kind in KINDS.items():
            arg = things[name]
            wanted = expected(p, kind, arg, world.device)
            for way in WAYS:
                view[:] = bytes([UNTOUCHED]) * ROOM
                has_memory = kind.memory is not None and kind.memory.nbytes >= 4
                view[ROOM - 1] = p.reads and has_memory
                found = _outcome(way, ways, arg)
                asked = _differs(name, way, wanted)
                if p.reads and not has_memory and isinstance(wanted, bytes):
                    asked = b""
                if not _matches(found, asked):
                    wrong.append(f"{name}, {way.__name__}: {asked!r} expected, got {found!r}")
    assert not wrong, "\n".join(wrong)


def test_the_count_of_arguments(world):
    ways = Ways(world, PARAMETERS["float*"])
    wrong = r"kernel u64 takes 2 argument\(s\), got {}"
    with ways.kept, cu.Graph(world.device) as graph:
        for args in ((), (None,), (None, world.out, 3)):
            for call in (
                lambda args=args: cu.launch(world.stream, ONE, ways.kernel, *args),
                lambda args=args: ways.kernel[1, 1, world.stream](*args),
                lambda args=args: graph.launch(ONE, ways.kernel, *args),
                lambda args=args: ways.kernel.bind(ONE, *args),
                lambda args=args: ways.node.update(ONE, ways.kernel, *args),
                lambda args=args: ways.steps[0]["k"].update(ONE, ways.kernel, *args),
            ):
                with pytest.raises(RULES["count"], match=wrong.format(len(args))):
                    call()
        assert not graph.nodes


DTYPES = (
    "f2",
    "bfloat16",
    "f4",
    "f8",
    "i1",
    "u1",
    "i2",
    "u2",
    "i4",
    "u4",
    "i8",
    "u8",
    "?",
    "c8",
    "c16",
)


@pytest.mark.parametrize("pointee", POINTEES)
def test_what_pointers_point_to(pointee, world, things):
    """Each type that C++ has a name for: its elements, its size, and how it is aligned."""
    types, unit = POINTEES[pointee]
    kernel = world.code.get_kernel("u64", strict_types=(f"const {pointee}*", "unsigned char*"))
    memory = things["buffer"]
    with cu.Graph(world.device) as graph:

        def launch(arg: Any) -> type[Exception] | None:
            try:
                graph.launch(ONE, kernel, arg, world.out)
            except Exception as error:  # whichever it is
                return type(error)
            return None

        for dtype in DTYPES:
            is_taken = types is None or dtype in (*types, "i1", "u1")
            wanted = None if is_taken else RULES["element type"]
            assert launch(things[f"tensor {dtype}"]) is wanted, dtype
        for at in (1, 2, 4, 8, 16):
            wanted = RULES["alignment"] if at % alignment(unit) else None
            for arg in (memory[at : at + 32], memory.ptr + at, address_of(memory) + at):
                assert launch(arg) is wanted, (at, arg)
        for nbytes in (*range(1, 34), 0):
            wanted = RULES["size"] if 0 < nbytes < unit else None
            assert launch(memory[:nbytes]) is wanted, nbytes


@pytest.mark.parametrize("what", ["elementwise", "reduce"])
def test_expressions(what, world, things):
    """They take tensors, whose strides they know, and the same of them as kernels."""
    made = {
        "elementwise": lambda x: cu.elementwise("float x", "float z", "z = x")(
            x, stream=world.stream
        ),
        "reduce": lambda x: cu.reduce("float x", "float z", "a + b")(x, stream=world.stream),
    }[what]
    wrong = []
    for name, kind in KINDS.items():
        wanted = expected_by_expression(kind, things[name], what, world.device)
        try:
            found: Any = made(things[name]) is not None
        except Exception as error:  # whichever it is
            found = error
        is_right = found is True if wanted is None else isinstance(found, wanted)
        if not is_right:
            wrong.append(f"{name}: {wanted} expected, got {found!r}")
    world.stream.sync()
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("mask", [np.ones(4, "?"), np.ma.nomask])
def test_a_mask_is_not_dropped_by_other_calls(mask, world):
    masked = np.ma.masked_array(np.zeros(4, "f4"), mask)
    there = world.device.allocate(16, stream=world.stream)
    x = cu.zeros(4, "f4", stream=world.stream)
    for call in (
        lambda: there.copy_from(masked, stream=world.stream),
        lambda: there.copy_to(masked, stream=world.stream),
        lambda: x.copy_from(masked, stream=world.stream),
        lambda: cu.asarray(masked, stream=world.stream),
        lambda: cu.from_dlpack(masked),
        lambda: cu.Graph(world.device).memcpy(there, masked),
        lambda: cu.copy_batch([(there, masked)], stream=world.stream),
        lambda: cu.pin(masked),
    ):
        with pytest.raises(RULES["mask"], match="masked array"):
            call()
    assert cu.asarray(masked.filled(3), stream=world.stream).shape == (4,)


def _without_access() -> cu.Device | None:
    """Return a device whose memory the first one cannot access; None if there is none."""
    others = cu.Device.all()[1:]
    return others[0] if others else None


def test_memory_of_another_device(world):
    """In a process with two devices, which `test_with_two_devices` begins if this has one."""
    if (other := _without_access()) is None:
        pytest.skip("there is one device")
    view = memoryview(world.out)
    wrong = []
    with view, other.create_stream() as there, other.allocate(64, stream=there) as far:
        far.fill(0, stream=there)
        there.sync()
        pointers = (far, far[16:], far.ptr, far.view("f4"), Dlpack(far.view("f4")))
        for parameter, args in (
            ("float*", pointers),
            ("B8", (Place(far),)),
            ("cudaTextureObject_t", (cu.Texture(far.view("f4")),)),
        ):
            ways = Ways(world, PARAMETERS[parameter])
            with ways.kept:
                for arg, way in itertools.product(args, WAYS):
                    view[:] = bytes([UNTOUCHED]) * ROOM
                    found = _outcome(way, ways, arg)
                    if not isinstance(found, RULES["device"]) or "device 1" not in str(found):
                        wrong.append(f"{type(arg).__name__}, {way.__name__}: {found!r}")
        del args, arg
    assert not wrong, "\n".join(wrong)


@dataclass
class Place:
    """A struct that is a pointer."""

    at: cu.Buffer


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_with_two_devices(driver):
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-k",
            "another_device",
            __file__,
        ],
        env=os.environ | {"CUDAGO_DRIVER": "sim", "CUDAGO_SIM": "devices=2"},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 passed" in run.stdout


# --- nothing without a row ------------------------------------------------------------------------


def test_every_type_that_is_known_has_a_row():
    from cudago._kernel import elements

    known = {*elements._OF_CPP, *elements._VECTORS}
    assert known <= set(POINTEES)
    values = {name for name in elements._OTHERS if name.endswith(("t", "Object_t", "Handle"))}
    assert {kind.kind for kind in PARAMETERS.values()} > {"texture", "surface", "condition"}
    assert values


# Public classes whose objects a kernel takes, and the rows that try them.
TAKEN = {
    "Buffer": "buffer",
    "Pointer": "pointer",
    "Tensor": "tensor f4",
    "Texture": "texture",
    "Surface": "surface",
    "TensorMap": "tensor map",
    "Condition": "condition",
    "Slot": "slot",  # a way of its own
}
# Those that have memory, or a number, and are refused all the same.
REFUSED = {"OpaqueArray": "opaque array", "Stream": "stream", "Device": "device", "Graph": "graph"}
# Neither memory nor numbers: what "object" says holds for all of them.
OTHERS = """
AllocNodeParams Allocation ArenaMemoryResource ArenaStatistics BatchMemOpNodeParams
BoundLaunch ChildGraphNodeParams ConditionalNodeParams ConfiguredKernel DeviceLimits
DeviceMemoryResource DeviceMonitor DeviceProcess DeviceProperties ElementwiseKernel Event
EventNodeParams ExchangeCount ExchangeStats ExecNode ExternalMemory ExternalSemaphore
Finalizer Fork FreeNodeParams GraphDiff GraphExec GraphFunction GraphMemory GraphProfile
GreenContext Holder HostNodeParams IPCAllocationHandle IPCBufferDescriptor IPCEventDescriptor
Kernel KernelAttributes KernelInfo KernelNodeParams LaunchConfig Linker LinkerOptions
ManagedMemoryResource MemcpyNodeParams MemoryResource MemsetNodeParams MipmappedArray
Neighbors Node NodeTime ObjectCode Parameter PinnedMemoryResource PoolOptions PoolStatistics
Program ProgramOptions ReduceKernel Retained SMPartition SemaphoreNodeParams
TrackingMemoryResource TrackingStatistics VirtualMemoryResource finalize memory_hooks profiler
timer
"""


def test_every_public_class_has_a_row():
    public = {
        name
        for name in cu.__all__
        if isinstance(cls := getattr(cu, name), type) and not issubclass(cls, BaseException)
    }
    assert public == {*TAKEN, *REFUSED, *OTHERS.split()}
    assert {*TAKEN.values(), *REFUSED.values()} - {"slot"} <= set(KINDS)


def _entry_points(tree: ast.Module) -> Iterator[str]:
    for scope in (tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))):
        for f in scope.body:
            if not isinstance(f, ast.FunctionDef):
                continue
            args = (
                *f.args.args,
                *f.args.posonlyargs,
                *f.args.kwonlyargs,
                f.args.vararg,
                f.args.kwarg,
            )
            notes = [ast.unparse(a.annotation) for a in args if a and a.annotation]
            if any("KernelArgument" in note for note in notes):
                yield f.name if scope is tree else f"{scope.name}.{f.name}"


def test_every_entry_point_has_a_row():
    package = Path(cu.__file__).parent
    found: set[str] = set()
    for path in (*package.rglob("*.py"), *package.rglob("*.pyi")):
        if "KernelArgument" in (text := path.read_text()):
            found.update(_entry_points(ast.parse(text)))
    by_graph = {"GraphExec.update"}  # which takes a graph, and all that is in it
    assert found - {"GraphExec._bind"} == set(ENTRY_POINTS) - by_graph
    tried = {name for name, way in vars(Ways).items() if callable(way) and not name.startswith("_")}
    assert tried - {"run"} == {way.__name__ for way in WAYS}


def test_the_documentation_has_the_rules():
    """A table with a row for each, which names the exception."""
    page = (ROOT / "docs" / "promises" / "kernels.rst").read_text()
    rows = re.findall(r"^   \* - (.+)\n     - .*(?:\n       .*)*\n     - (.+)$", page, re.M)
    told = {name: error for name, error in rows if name != "Rule"}
    assert list(told) == list(RULES)
    for name, error in RULES.items():
        assert error.__name__ in told[name], name
