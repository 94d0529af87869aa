# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The C floor: the driver calls behind each operation, in a loop in C.

`cfloor/cfloor.c` has the loops. It is compiled when the benchmark runs, by ``$CC`` or ``cc``; what
the loops need (context, kernel, graphs, memory) is made here, through ctypes.
"""

from __future__ import annotations

import ctypes as c
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import operations as op
from measure import Case

_UPDATES = (op.BIND, op.UPDATE, op.UPDATE_NAMED, op.UPDATE_ALL)
_U, _H, _PTR = c.c_uint, c.c_void_p, c.c_uint64
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
_WITHOUT_TIMING = 2  # CU_EVENT_DISABLE_TIMING
_UNIFIED = 4  # CU_MEMORYTYPE_UNIFIED
_THRESHOLD = 4  # CU_MEMPOOL_ATTR_RELEASE_THRESHOLD


class FloorUnavailableError(Exception):
    """There is no C compiler or no NVIDIA driver; the text says which."""


class _KernelNodeParams(c.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2, cuda.h, CUDA 12.4."""

    _fields_ = (
        ("func", _H),
        ("grid", _U * 3),
        ("block", _U * 3),
        ("shared", _U),
        ("params", _H),
        ("extra", _H),
        ("kern", _H),
        ("ctx", _H),
    )


def compiled(name: str, kind: type[c.CDLL] = c.CDLL) -> c.CDLL:
    """Compile a file of loops and load it; `kind` PyDLL calls them with the GIL."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(compiler[0]) is None:
        raise FloorUnavailableError(f"no C compiler ({compiler[0]}); set CC to measure the C floor")
    source = Path(__file__).with_name("cfloor") / name
    with tempfile.TemporaryDirectory() as directory:
        library = Path(directory) / "cfloor.so"
        command = [*compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise FloorUnavailableError(f"{shlex.join(command)} failed:\n{done.stderr}")
        return kind(str(library))


def _open_driver() -> c.CDLL:
    names = [os.environ["CUDAGO_LIBCUDA"]] if os.environ.get("CUDAGO_LIBCUDA") else []
    why = []
    for name in [*names, "libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"]:
        try:
            return c.CDLL(name)
        except OSError as error:
            why.append(str(error))
    raise FloorUnavailableError("no NVIDIA driver: " + "; ".join(why))


class _MemcpySide(c.Structure):
    """Half of CUDA_MEMCPY3D, cuda.h, CUDA 12.4."""

    _fields_ = (
        ("x", c.c_size_t),
        ("y", c.c_size_t),
        ("z", c.c_size_t),
        ("lod", c.c_size_t),
        ("type", _U),
        ("host", _H),
        ("device", _PTR),
        ("array", _H),
        ("reserved", _H),
        ("pitch", c.c_size_t),
        ("height", c.c_size_t),
    )


class _MemcpyParams(c.Structure):
    """CUDA_MEMCPY3D, cuda.h, CUDA 12.4."""

    _fields_ = (
        ("src", _MemcpySide),
        ("dst", _MemcpySide),
        ("width", c.c_size_t),
        ("rows", c.c_size_t),
        ("slices", c.c_size_t),
    )


class Floor:
    """What the loops work on: a stream of its own in the primary context of device 0."""

    def __init__(self) -> None:
        self._loops = compiled("cfloor.c")
        self._driver = _open_driver()
        self._keep: list[object] = []  # parameter memory that C reads later
        self._call("cuInit", _U(0))
        device, self._context = c.c_int(), _H()
        self._call("cuDeviceGet", c.byref(device), c.c_int(0))
        self._call("cuDevicePrimaryCtxRetain", c.byref(self._context), device)
        self._call("cuCtxSetCurrent", self._context)
        self._stream = self._new("cuStreamCreate", _U(_NON_BLOCKING))
        self._keep_pool(device)
        module = self._new("cuModuleLoadData", op.PTX.encode())
        self._kernel = self._new("cuModuleGetFunction", module, op.KERNEL.encode())
        self._params = self._pack_arguments()

    def _call(self, name: str, *args: object) -> None:
        result = getattr(self._driver, name)(*args)
        if result != 0:
            raise RuntimeError(f"{name}: CUresult {result}")

    def _new(self, name: str, *args: object) -> c.c_void_p:
        handle = _H()
        self._call(name, c.byref(handle), *args)
        return handle

    def _keep_pool(self, device: c.c_int) -> None:
        """Let the default pool keep its memory.

        Without it, the first allocation after each wait maps memory afresh.
        """
        pool = self._new("cuDeviceGetDefaultMemPool", device)
        self._call("cuMemPoolSetAttribute", pool, c.c_int(_THRESHOLD), c.byref(c.c_uint64(2**63)))

    def _memory(self, call: str, *args: object) -> int:
        address = c.c_uint64()
        self._call(call, c.byref(address), *args)
        return address.value

    def _pack_arguments(self) -> c.Array[c.c_void_p]:
        x = self._memory("cuMemAlloc_v2", c.c_size_t(op.COPY_SIZE))
        values = (c.c_uint64(x), c.c_uint64(x), c.c_int(1))
        self._keep.append(values)
        return (_H * len(values))(*(c.addressof(value) for value in values))

    def _loop(self, name: str, functions: tuple[str, ...], calls: int, *args: object) -> float:
        loop = getattr(self._loops, name)
        loop.restype = c.c_int64
        elapsed = loop(*(getattr(self._driver, f) for f in functions), c.c_int64(calls), *args)
        if elapsed < 0:
            raise RuntimeError(f"{'/'.join(functions)}: CUresult {-elapsed}")
        return float(elapsed)

    def facts(self) -> dict[str, str]:
        """Return what the figures depend on."""
        version, name = c.c_int(), c.create_string_buffer(256)
        self._call("cuDriverGetVersion", c.byref(version))
        self._call("cuDeviceGetName", name, c.c_int(len(name)), c.c_int(0))
        number = f"{version.value // 1000}.{version.value % 1000 // 10}"
        return {"device": name.value.decode(), "driver's CUDA": number}

    def settle(self) -> None:
        """Wait for the stream."""
        self._call("cuStreamSynchronize", self._stream)

    def _node_params(self) -> _KernelNodeParams:
        params = _KernelNodeParams(
            func=self._kernel,
            grid=(1, 1, 1),
            block=(op.BLOCK, 1, 1),
            params=c.addressof(self._params),
        )
        self._keep.append(params)
        return params

    def _chain(self, nodes: int) -> tuple[c.c_void_p, c.c_void_p]:
        """Return a graph of so many kernel nodes in a row, and its last node."""
        graph = self._new("cuGraphCreate", _U(0))
        params, last = self._node_params(), _H()
        for i in range(nodes):
            before = c.byref(last) if i else None
            count = c.c_size_t(1 if i else 0)
            node = _H()
            self._call(
                "cuGraphAddKernelNode_v2", c.byref(node), graph, before, count, c.byref(params)
            )
            last = node
        return graph, last

    def cases(self) -> list[Case]:
        """Return a case for each operation that has a floor."""
        return [
            self._launch_kernel(op.LAUNCH),
            self._launch_kernel(op.LAUNCH_THERE),
            *(self._launch_graph(op.GRAPH[nodes], nodes) for nodes in op.GRAPH),
            self._add_node(),
            self._add_copy(),
            self._capture(),
            self._build(),
            *(self._update_kernel(operation) for operation in _UPDATES),
            *(self._update_memcpy(operation) for operation in (op.BIND_COPY, op.UPDATE_COPY)),
            *(self._launch_graph(operation, 1) for operation in (op.BOUND, op.REPLAY)),
            self._alloc(),
            self._copy(),
            self._record(),
            self._case(op.WAIT, "wait_for_stream", ("cuStreamSynchronize",), self._stream),
            self._launch_graph_and_wait(),
        ]

    def _case(self, operation: str, loop: str, functions: tuple[str, ...], *args: object) -> Case:
        calls = op.calls_per_batch(operation)
        return Case(
            operation,
            "C floor",
            lambda: self._loop(loop, functions, calls, *args),
            self.settle,
            calls,
        )

    def launch(self) -> tuple[object, ...]:
        """Return what another loop needs for a launch behind the work in another stream.

        The functions; the kernel, its block size and the parameters; an event and the stream.
        """
        names = ("cuLaunchKernel", "cuEventRecord", "cuStreamWaitEvent")
        event = self._new("cuEventCreate", _U(_WITHOUT_TIMING))
        calls = (c.cast(getattr(self._driver, name), _H) for name in names)
        kernel = (self._kernel, _U(op.BLOCK), c.cast(self._params, _H))
        return *calls, *kernel, event, self._stream

    def _launch_kernel(self, operation: str) -> Case:
        args = (self._kernel, _U(op.BLOCK), self._stream, self._params)
        return self._case(operation, "launch_kernel", ("cuLaunchKernel",), *args)

    def _instantiate(self, graph: c.c_void_p) -> c.c_void_p:
        return self._new("cuGraphInstantiateWithFlags", graph, c.c_uint64(0))

    def _launch_graph(self, operation: str, nodes: int) -> Case:
        graph, _ = self._chain(nodes)
        args = (self._instantiate(graph), self._stream)
        return self._case(operation, "launch_graph", ("cuGraphLaunch",), *args)

    def _launch_graph_and_wait(self) -> Case:
        graph, _ = self._chain(100)
        functions = ("cuGraphLaunch", "cuStreamSynchronize")
        args = (self._instantiate(graph), self._stream)
        return self._case(op.WAIT_GRAPH, "launch_graph_and_wait", functions, *args)

    def _update_kernel(self, operation: str) -> Case:
        graph, node = self._chain(1)
        params = self._node_params()
        args = (self._instantiate(graph), node, c.byref(params))
        function = "cuGraphExecKernelNodeSetParams_v2"
        return self._case(operation, "update_kernel_node", (function,), *args)

    def _copy_params(self) -> _MemcpyParams:
        """Copy between device memory, as the driver is told by cudago: by unified addresses."""
        size = op.COPY_SIZE
        src, dst = (
            _MemcpySide(type=_UNIFIED, device=memory, pitch=size, height=1)
            for memory in (self._memory("cuMemAlloc_v2", c.c_size_t(size)) for _ in range(2))
        )
        params = _MemcpyParams(src, dst, size, 1, 1)
        self._keep.append(params)
        return params

    def _copy_graph(self, params: _MemcpyParams) -> tuple[c.c_void_p, c.c_void_p]:
        """Return a graph of one copy, and its node."""
        graph = self._new("cuGraphCreate", _U(0))
        add = "cuGraphAddMemcpyNode"
        return graph, self._new(add, graph, None, c.c_size_t(0), c.byref(params), self._context)

    def _update_memcpy(self, operation: str) -> Case:
        params = self._copy_params()
        graph, node = self._copy_graph(params)
        args = (self._instantiate(graph), node, c.byref(params), self._context)
        function = "cuGraphExecMemcpyNodeSetParams"
        return self._case(operation, "update_memcpy_node", (function,), *args)

    def _capture(self) -> Case:
        calls = op.calls_per_batch(op.CAPTURE)

        def batch() -> float:
            graph = _H()
            took = self._loop(
                "capture_kernels",
                ("cuStreamBeginCapture_v2", "cuLaunchKernel", "cuStreamEndCapture"),
                calls,
                self._kernel,
                c.c_uint(op.BLOCK),
                self._stream,
                self._params,
                c.byref(graph),
            )
            self._call("cuGraphDestroy", graph)
            return took

        return Case(op.CAPTURE, "C floor", batch, self.settle, calls)

    def _build(self) -> Case:
        functions = (
            "cuGraphCreate",
            "cuGraphAddKernelNode_v2",
            "cuGraphInstantiateWithFlags",
            "cuGraphExecDestroy",
            "cuGraphDestroy",
        )
        params = self._node_params()
        return self._case(op.BUILD, "build_graph", functions, c.byref(params))

    def _add_node(self) -> Case:
        params = self._node_params()
        calls = op.calls_per_batch(op.ADD_NODE)

        def batch() -> float:
            graph, first = self._chain(1)
            try:
                return self._loop(
                    "add_kernel_node",
                    ("cuGraphAddKernelNode_v2",),
                    calls,
                    graph,
                    first,
                    c.byref(params),
                )
            finally:
                self._call("cuGraphDestroy", graph)

        return Case(op.ADD_NODE, "C floor", batch, self.settle, calls)

    def _add_copy(self) -> Case:
        params, function = self._copy_params(), ("cuGraphAddMemcpyNode",)
        calls = op.calls_per_batch(op.ADD_COPY)

        def batch() -> float:
            graph, first = self._copy_graph(params)
            args = (graph, first, c.byref(params), self._context)
            try:
                return self._loop("add_memcpy_node", function, calls, *args)
            finally:
                self._call("cuGraphDestroy", graph)

        return Case(op.ADD_COPY, "C floor", batch, self.settle, calls)

    def _alloc(self) -> Case:
        functions = ("cuMemAllocAsync", "cuMemFreeAsync")
        size = c.c_size_t(op.ALLOC_SIZE)
        return self._case(op.ALLOC, "alloc_and_free", functions, size, self._stream)

    def _copy(self) -> Case:
        dst = self._memory("cuMemAlloc_v2", c.c_size_t(op.COPY_SIZE))
        src = self._memory("cuMemHostAlloc", c.c_size_t(op.COPY_SIZE), _U(0))
        args = (_PTR(dst), _PTR(src), c.c_size_t(op.COPY_SIZE), self._stream)
        return self._case(op.COPY, "copy", ("cuMemcpyAsync",), *args)

    def _record(self) -> Case:
        event = self._new("cuEventCreate", _U(_WITHOUT_TIMING))
        return self._case(op.RECORD, "record_event", ("cuEventRecord",), event, self._stream)
