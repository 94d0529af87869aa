# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that other compilers make without a GPU, launched and compared with NumPy."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import cudago as cu

from .cases import Case, missing


@pytest.fixture
def arch(request: pytest.FixtureRequest, device: cu.Device) -> int:
    """Architecture to compile for, as 75; a test gets it by indirect parameters."""
    major, minor = device.compute_capability
    if request.param > 10 * major + minor:
        missing(f"the device is sm_{major}{minor}; CUDAGO_SIM=cc=9.0 simulates a later one")
    return request.param


class Launcher:
    """Launches kernels on NumPy arrays, which hold what is in their memory afterwards."""

    def __init__(self, device: cu.Device, stream: cu.Stream) -> None:
        self.device, self.stream = device, stream

    def __call__(
        self,
        kernel: cu.Kernel,
        grid: Any,
        block: Any,
        args: list,
        *,
        shared: int = 0,
        cooperative: bool = False,
    ) -> None:
        """Upload the arrays among `args`, launch, and copy all of them back."""
        with contextlib.ExitStack() as stack:
            held: dict[int, tuple[np.ndarray, cu.Buffer]] = {}

            def upload(a: Any) -> Any:
                if callable(a):  # a struct, which has addresses inside
                    return a(lambda inner: int(upload(inner)))
                if not isinstance(a, np.ndarray):
                    return a
                base = a if a.base is None else a.base
                if id(base) not in held:
                    buffer = self.device.allocate(max(base.nbytes, 1), stream=self.stream)
                    held[id(base)] = base, stack.enter_context(buffer)
                    if base.nbytes:
                        buffer.copy_from(raw(base), stream=self.stream)
                return held[id(base)][1].ptr + (a.ctypes.data - base.ctypes.data)

            config = cu.LaunchConfig(grid, block, shared_memory=shared, cooperative=cooperative)
            cu.launch(self.stream, config, kernel, *[upload(a) for a in args])
            self.stream.sync()
            for base, buffer in held.values():
                if base.nbytes:
                    buffer.copy_to(raw(base), stream=self.stream)
            self.stream.sync()


def raw(a: np.ndarray) -> np.ndarray:
    """Bytes of an array that is contiguous in some order."""
    return (a if a.flags.c_contiguous else a.T).reshape(-1).view("u1")


@pytest.fixture
def launcher(device: cu.Device, stream: cu.Stream) -> Launcher:
    """Launch a kernel: ``launcher(kernel, grid, block, args)``."""
    return Launcher(device, stream)


class Numba:
    """Compiles kernels of Numba, and launches them."""

    def __init__(self, launcher: Launcher) -> None:
        self.launcher = launcher

    def ptx(self, function: Any, args: list, arch: int, **options: Any) -> str:
        """Compile a function for arguments like these."""
        from numba import cuda, typeof

        types = tuple(typeof(a) for a in args)
        return cuda.compile_ptx(function, types, cc=divmod(arch, 10), **options)[0]

    def compile(self, function: Any, args: list, arch: int, **options: Any) -> cu.Kernel:
        """Return the one kernel of what `ptx` makes."""
        code = cu.ObjectCode.from_ptx(self.ptx(function, args, arch, **options))
        (name,) = code.kernels
        return code[name]

    def expanded(self, args: list) -> Iterator[Any]:
        """Return what a kernel takes for each argument. For an array that is seven or more.

        They are the object that owns the memory, its parent, two sizes, data, shape and strides.
        """
        for a in args:
            if isinstance(a, np.ndarray):
                yield from (None, None, a.size, a.itemsize, a, *a.shape, *a.strides)
            elif isinstance(a, tuple):
                yield from a
            else:
                yield a

    def __call__(self, case: Case, args: list, arch: int) -> None:
        """Compile for `arch`, and launch."""
        kernel = self.compile(case.kernel, args, arch, **case.options)
        given = [*self.expanded(args)]
        self.launcher(kernel, case.grid, case.block, given, shared=case.shared)


@pytest.fixture(scope="session")
def numba_compiles() -> None:
    """Find out whether Numba has what it needs: NVVM, and libdevice."""
    cuda = pytest.importorskip("numba.cuda")
    with pytest.MonkeyPatch.context() as patch:
        # numba-cuda 0.30 names it, once, with its first kernel; NumPy 2.5 has it no more.
        patch.setitem(vars(np), "row_stack", np.vstack)
        try:
            cuda.compile_ptx(lambda: None, (), cc=(7, 5))
        except Exception as e:  # whatever it is, a test of kernels can say no more of it
            missing(f"Numba compiles nothing here: {type(e).__name__}: {e}".partition("\n")[0])


@pytest.fixture
def run_numba(numba_compiles: None, launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> Numba:
    """Compile and launch a case of Numba."""
    dispatcher = pytest.importorskip("numba.cuda.dispatcher")
    # Device functions are compiled for the GPU at hand, and so would be without one: what Numba
    # makes of them is not specific to an architecture yet.
    device = types.SimpleNamespace(compute_capability=(7, 5))
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: device)
    return Numba(launcher)


class Triton:
    """Compiles kernels of Triton, and launches them."""

    NAMES: ClassVar = {"i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u1": "u8", "u4": "u32"}
    NAMES |= {"u8": "u64", "f2": "fp16", "f4": "fp32", "f8": "fp64"}
    OTHERS: ClassVar = {"bfloat16": "bf16", "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5"}

    def __init__(self, launcher: Launcher) -> None:
        self.launcher = launcher

    def type_of(self, a: Any) -> str:
        """Return how Triton calls the type of an argument."""
        if isinstance(a, np.ndarray):
            t = a.dtype
            return "*" + (self.OTHERS.get(t.name) or self.NAMES[t.str[1:]])
        return "i32" if isinstance(a, int) else "fp32"

    def compile(self, kernel: Any, args: list, arch: int, options: dict[str, Any]) -> Any:
        """Compile a kernel for arguments like these, as a call of it would.

        `options` has its compile-time parameters, and the compiler's own.
        """
        from triton import compile as compile_
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        names = kernel.arg_names
        constants = {k: v for k, v in options.items() if k in names}
        taken = [n for n in names if n not in constants]
        signature = {n: self.type_of(a) for n, a in zip(taken, args, strict=True)}
        # Memory is aligned to 256 bytes; what Triton knows of that decides how wide it loads.
        divisible = {
            (names.index(n),): [["tt.divisibility", 16]]
            for n, a in zip(taken, args, strict=True)
            if isinstance(a, np.ndarray) or (isinstance(a, int) and a % 16 == 0)
        }
        source = ASTSource(kernel, signature, constants, divisible)
        own = {k: v for k, v in options.items() if k not in names and k not in ("first", "last")}
        return compile_(source, target=GPUTarget("cuda", arch, 32), options=own)

    def __call__(self, case: Case, args: list, arch: int) -> None:
        """Compile for `arch`, and launch."""
        made = self.compile(case.kernel, args, arch, case.options)
        assert made.metadata.global_scratch_size == made.metadata.profile_scratch_size == 0
        kernel = cu.ObjectCode.from_ptx(made.asm["ptx"])[made.metadata.name]
        # After the kernel's own parameters come pointers to scratch memory.
        hidden = [None] * (len(kernel.signature) - len(args))
        block = 32 * made.metadata.num_warps
        self.launcher(kernel, case.grid, block, [*args, *hidden], shared=made.metadata.shared)


@pytest.fixture
def run_triton(launcher: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Triton:
    """Compile and launch a case of Triton, with a cache that starts out empty."""
    triton = pytest.importorskip("triton")

    def stop_at_ptx(*args: Any) -> tuple[str, str] | None:
        if not args:
            return "PTX", "PTX"  # for the cache: what the next lines make of the stages
        args[1]["cubin"] = lambda *_: b""
        return None

    monkeypatch.setattr(triton.knobs.runtime, "add_stages_inspection_hook", stop_at_ptx)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # as before Triton 3.10
    return Triton(launcher)


class Nvrtc:
    """Compiles CUDA C++ with the headers of CUDA and of CuPy."""

    HEADERS = ("cccl/cub/cub.cuh", "cuda_fp16.h", "crt/mma.h", "curand_kernel.h")

    def __init__(self) -> None:
        self.ptx: dict[tuple[str, int], str] = {}  # text: code would count as left behind

    @functools.cached_property
    def include_path(self) -> list[Path]:
        """Where CUDA's headers are: in packages of PyPI, or in the toolkit that CUDA_HOME names."""
        try:
            roots = [*importlib.import_module("nvidia.cu13").__path__]
        except ImportError:
            roots = []
        if home := os.environ.get("CUDA_HOME"):
            roots.append(home)
        lacking = "no package of them is installed, and CUDA_HOME is not set"
        for include in (Path(root, "include") for root in roots):
            absent = [header for header in self.HEADERS if not (include / header).exists()]
            if not absent:
                return [include, include / "cccl"]
            lacking = f"{include} has no {', no '.join(absent)}"
        missing(f"CUDA's headers: {lacking}")

    def __call__(self, source: str, arch: int, *include_path: Path, std: str = "c++17") -> Any:
        """Compile `source`, or take what was made of it before."""
        key = source, arch
        if key not in self.ptx:
            options = cu.ProgramOptions(
                arch=f"sm_{arch}", std=std, include_path=[*include_path, *self.include_path]
            )
            ptx = cu.Program(source, options=options).compile("ptx").ptx
            assert ptx is not None
            self.ptx[key] = ptx
        return cu.ObjectCode.from_ptx(self.ptx[key])


@pytest.fixture(scope="session")
def nvrtc() -> Nvrtc:
    """Compile CUDA C++ for an architecture: ``nvrtc(source, arch)``."""
    return Nvrtc()


@pytest.fixture
def run_cuda(nvrtc: Nvrtc, launcher: Launcher) -> Callable[[Case, list, int], None]:
    """Compile and launch a case of CUDA C++. Its kernel is the source, and the kernel's name."""

    def run(case: Case, args: list, arch: int) -> None:
        if arch < case.options.get("first", 0):
            pytest.skip("CUDA has this for later architectures")
        source, name = case.kernel
        together = case.options.get("cooperative", False)
        kernel = nvrtc(source, arch)[name]
        launcher(kernel, case.grid, case.block, args, shared=case.shared, cooperative=together)

    return run
